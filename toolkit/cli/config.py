"""`toolkit config show`."""

import typer

from toolkit.cli.frame import Report, Session, command


def register(app: typer.Typer) -> None:
    """Add the `config` group to the command line."""
    group = typer.Typer(help="The settings.", no_args_is_help=True)
    app.add_typer(group, name="config")

    @command(group, "show", ("toolkit config show", "toolkit config show --set pretrain.preset=tiny --json"))
    def show(session: Session) -> Report:
        """Print every setting, its value and where it came from."""
        resolved = session.settings()
        rows = [(key, value, resolved.sources[key]) for key, value in resolved.flat().items()]
        width = max(len(key) for key, _, _ in rows)
        lines = [f"{key:{width}}  {value!s:28}  {source}" for key, value, source in rows]
        return Report([{"key": k, "value": v, "source": s} for k, v, s in rows], "\n".join(lines))
