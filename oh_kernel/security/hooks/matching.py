"""Which tools does the matcher of a hook mean?"""

import re
from collections.abc import Callable

_METACHARACTERS = re.compile(r"[|.*+?\[\](){}^$\\]")


def pattern_of(matcher: str) -> Callable[[str], bool]:
    """Whether a tool's name is meant, as a function; raises `re.error`.

    `*` and "" mean every tool. `/.../`, and anything with a metacharacter in it, is a regular
    expression for the whole name; the rest is a name.

    >>> [pattern_of(m)("terminal") for m in ("*", "term", "/term.*/", "ipython|terminal", "term.?")]
    [True, False, True, True, False]
    """
    if matcher in ("", "*"):
        return lambda name: True
    if len(matcher) > 2 and matcher.startswith("/") and matcher.endswith("/"):
        return _whole(matcher[1:-1])
    if _METACHARACTERS.search(matcher):
        return _whole(matcher)
    return matcher.__eq__


def _whole(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda name: compiled.fullmatch(name) is not None
