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
        import socket
        import sys
        from pathlib import Path

        store = session.settings().settings.paths.runs.resolve()
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            try:
                probe.bind(("", port))
            except OSError as error:
                raise ToolkitError(f"port {port} cannot be used ({error.strerror}): choose one with --port") from None
        # Found by its name and run by its path: toolkit never imports the dashboard.
        package = Path(importlib.util.find_spec("dashboard").origin).parent
        # -P: no streamlit.py, random.py … of the working folder takes the place of the real one.
        arguments = [
            sys.executable,
            "-P",
            "-m",
            "streamlit",
            "run",
            str(package / "app.py"),
            "--server.port",
            str(port),
        ]
        paths = [path for path in (os.environ.get("PYTHONPATH"), str(package.parent)) if path]
        environment = {**os.environ, "TOOLKIT_RUNS": str(store), "PYTHONPATH": os.pathsep.join(paths)}

        def serve() -> None:
            """Become the server: one process, so that it ends with the command whatever ends that."""
            sys.stderr.flush()
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # standard output is for our own document
            os.execve(sys.executable, arguments, environment)

        document = {"store": str(store), "port": port, "url": f"http://localhost:{port}"}
        return Report(document, f"{document['url']}: the runs in {store}; Ctrl-C ends it", then=serve)
