"""`toolkit dashboard`."""

from typing import Annotated

import typer

from toolkit.cli.frame import Report, Session, command
from toolkit.errors import ToolkitError


def register(app: typer.Typer) -> None:
    """Add the `dashboard` command to the command line."""

    @command(app, "dashboard", ("toolkit dashboard", "toolkit dashboard --port 8502"))
    def dashboard(
        session: Session,
        port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on this machine.")] = 8501,
    ) -> Report:
        """Serve the dashboard on this machine until Ctrl-C: the same as `streamlit run dashboard/app.py`."""
        import importlib.util
        import os
        import subprocess
        import sys
        from pathlib import Path

        store = session.settings().settings.paths.runs.resolve()
        # Found by its name and run by its path: toolkit never imports the dashboard.
        package = Path(importlib.util.find_spec("dashboard").origin).parent
        arguments = ["-m", "streamlit", "run", str(package / "app.py"), "--server.port", str(port)]
        environment = {**os.environ, "TOOLKIT_RUNS": str(store)}
        # Standard output stays free for our own document; streamlit's greeting goes to standard error.
        code = subprocess.call([sys.executable, *arguments], env=environment, stdout=sys.stderr)
        if code:
            raise ToolkitError(
                f"streamlit ended with exit code {code}, its message stands above; is port {port} taken?"
            )
        return Report({"store": str(store), "port": port}, "dashboard ended")
