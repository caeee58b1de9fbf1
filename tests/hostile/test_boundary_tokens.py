"""Boundary tokens written by hand: the model adds them itself, so each command that reads sentences says so."""

import pytest


@pytest.mark.parametrize("line", ["<S> the bank </S>", "<S> the bank", "the bank </S>"])
@pytest.mark.parametrize("command", ["embed", "score"])
def test_a_boundary_token_in_a_line_is_reported_once(toolkit, tmp_path, scoring_model, caplog, command, line) -> None:
    (tmp_path / "text.txt").write_text(f"the river\n{line}\n{line}\n", encoding="utf-8")
    output = ["-o", "out.h5"] if command == "embed" else []
    toolkit(command, scoring_model, "text.txt", *output).worked()
    told = [record.getMessage() for record in caplog.records if "boundary tokens are added" in record.getMessage()]
    assert len(told) == 1 and "text.txt, line 2 has <S> or </S>" in told[0]
