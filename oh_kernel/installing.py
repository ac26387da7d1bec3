"""With which command is a library installed where this interpreter, or another, finds it?"""

import json
import shlex
import sys
from importlib.metadata import distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname


def pip_install(*words: str, python: str = sys.executable) -> str:
    """A line for a shell that installs `words` for the interpreter `python`."""
    return shlex.join([python, "-m", "pip", "install", *words])


def ours() -> str:
    """What pip is to be given for oh-kernel itself: the folder it came from, or else its name."""
    origin = json.loads(distribution("oh-kernel").read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    return url2pathname(url.path) if url.scheme == "file" else "oh-kernel"
