from __future__ import annotations

from tests.campaign import commandlines


def test_hostile_command_lines_end_in_one_line() -> None:
    outcome = commandlines.run(0, 24)
    assert not outcome.failures, outcome.examples
    assert outcome.cases == 24
    assert outcome.refused > 8


def test_every_command_and_option_is_drawn() -> None:
    rng, said = commandlines.np.random.default_rng(0), set()
    for _ in range(4000):
        name, *words = [*commandlines.draw_words(rng), ""]
        said |= {(name, word) for word in words}
    for name, command in commandlines.commands().items():
        for param in command.params:
            if param.opts[0].startswith("--") and param.opts[0] != "--help":
                assert (name, param.opts[0]) in said, (name, param.opts[0])
