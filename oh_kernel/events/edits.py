"""How did a call change a file, whatever the tool?"""

from dataclasses import dataclass


@dataclass(frozen=True)
class FileEdit:
    """The change of one file. `old` is None for a file that is new, `new` for one that is gone."""

    path: str
    old: str | None
    new: str | None
    moved_to: str | None = None

    @property
    def name(self) -> str:
        """The file as a person is told of it.

        >>> FileEdit("a.py", "", "", moved_to="b.py").name
        'a.py → b.py'
        """
        return f"{self.path} → {self.moved_to}" if self.moved_to else self.path
