"""Secrets in text that comes in pieces."""

import pytest

from oh_kernel.sessions.masking import HIDDEN, StreamMask


def masked(values: list[str], *pieces: str) -> str:
    mask = StreamMask(values)
    return "".join(map(mask.feed, pieces)) + mask.flush()


@pytest.mark.parametrize(
    "values",
    [
        ["hunter22"],
        ["hunter", "hunter22x"],  # one is the beginning of another
        ["abcabcabd"],  # its own beginning comes again within it
        ["aXXXXXa", "XXXXXaX"],
        ["two\nlines"],
        ['quo"ted\\'],
    ],
)
def test_a_value_is_hidden_wherever_pieces_are_cut(values: list[str]) -> None:
    text = "".join(f"<{value}> {value[:4]} abcabc {value}{value} tail " for value in values)
    whole = masked(values, text)
    assert not any(value in whole for value in values)
    for cut in range(len(text)):
        assert masked(values, text[:cut], text[cut:]) == whole, cut
    assert masked(values, *text) == whole


def test_other_text_is_not_touched() -> None:
    assert masked(["secret-value"], "secret-valu", "x secret") == "secret-valux secret"
    assert masked([], "a", "b") == "ab"
    assert masked(["short"], "short") == "short"  # it would be found inside other words


def test_a_value_is_hidden_inside_json_too() -> None:
    assert masked(['quo"ted'], '{"k": "quo\\"ted"}') == f'{{"k": "{HIDDEN}"}}'
