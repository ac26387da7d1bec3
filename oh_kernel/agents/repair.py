"""What did a model mean by a call that no tool takes as it stands?

Models write names of other products, lists as text, text as lists, arguments one level too deep.
What can mean one thing only is mended here; whatever else is wrong is left for validation to name.
"""

import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from oh_kernel.events.text import parsed_json
from oh_kernel.tools.schema import definitions_of

Schema = Mapping[str, Any]

# Names that models know from other products.
_ALIASES = {
    "bash": "terminal",
    "command": "terminal",
    "execute": "terminal",
    "execute_bash": "terminal",
    "git": "terminal",
    "reset": "terminal",
    "run_shell_command": "terminal",
    "shell": "terminal",
    "str_replace": "file_editor",
    "str_replace_based_edit_tool": "file_editor",
    "str_replace_editor": "file_editor",
    "execute_ipython_cell": "ipython",
    "execute_python": "ipython",
    "python": "ipython",
    "run_ipython": "ipython",
    "replace": "edit",
}
_PROGRAMS = ("git", "reset")  # aliases that are the command's first word as well
_BARE_COMMANDS = ("find", "git", "ls", "pwd")
_ASKED_WITH_EVERY_CALL = ("security_risk", "summary")
# Names of arguments that mean the same in one product or another.
_SYNONYMS = (
    ("path", "file_path", "filepath", "filename", "file", "dir_path", "directory"),
    ("old_str", "old_string", "old_text"),
    ("new_str", "new_string", "new_text"),
    ("file_text", "content", "contents"),
    ("command", "cmd"),
    ("patch", "input", "diff"),
    ("task_list", "tasks", "todos"),
)
# The first of these arguments that a call has says which command of the tool was left out.
_EDITING = {
    "old_str": "str_replace",
    "insert_line": "insert",
    "file_text": "create",
    "path": "view",
}
_COMMAND_BY_ARGUMENT = {
    "file_editor": _EDITING,
    "planning_file_editor": _EDITING,
    "task_tracker": {"task_list": "plan"},
}
_RESIDUE = re.compile(r"\s|</?\s*(?:parameter|function)", re.IGNORECASE)


def first_json(text: str) -> Any:
    """The JSON value that `text` is, or was before something was left behind its last bracket.

    >>> first_json('{"a": [1]}</parameter>')
    {'a': [1]}
    """
    try:
        # Not strict: models leave raw newlines and tabs in strings, which can only mean themselves.
        return parsed_json(text, strict=False)
    except ValueError:
        end = max(text.rfind("}"), text.rfind("]")) + 1
        if end == 0 or not text[end:].strip():
            raise
        return parsed_json(text[:end], strict=False)


def meant_tool(
    name: str, arguments: dict[str, Any], tools: Collection[str]
) -> tuple[str, dict[str, Any]] | None:
    """The name of the tool that is meant, and its arguments; None where none of `tools` is."""
    if "apply_patch" in tools and _is_patching(arguments.get("command")):
        return "apply_patch", {**_beside(arguments), "patch": arguments["command"][1]}
    if name in tools:
        return name, arguments
    for word in _spellings(name):
        if word in tools:
            return word, arguments
        if (target := _ALIASES.get(word)) in tools and target is not None:
            return target, _with_program(word, arguments) if word in _PROGRAMS else arguments
        if "terminal" in tools and (command := _as_command(word, arguments)):
            return "terminal", {**_beside(arguments), "command": command}
    return None


def meant_arguments(
    tool: str, arguments: dict[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call of `tool` as its `schema` has them, without those that are null,
    unless null is an answer that must be given.
    """
    if tool == "terminal":
        arguments = _with_words_joined(arguments)
    fields = schema["properties"]
    mended = _fields(_unwrapped(arguments, fields), schema, definitions_of(dict(schema)))
    commands = {} if "command" in mended else _COMMAND_BY_ARGUMENT.get(tool, {})
    meant = [command for name, command in commands.items() if name in mended]
    return {"command": meant[0], **mended} if meant else mended


def _spellings(name: str) -> Iterator[str]:
    """What `name` may stand for: without what follows it, without a namespace, in our letters."""
    match = re.match(r"[A-Za-z_][\w.:-]*", name.strip())
    if match is None:
        return
    last = re.split(r"[.:]", match.group().rstrip(".:-"))[-1]
    yield last
    snake = _snake(last)
    yield snake
    yield snake.removesuffix("_tool")


def _snake(name: str) -> str:
    """
    >>> _snake("FileEditor"), _snake("file-path"), _snake("OLD_STR")
    ('file_editor', 'file_path', 'old_str')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\s-]+", "_", parted.strip()).lower()


def _beside(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a call says beside the arguments of its tool."""
    return {k: v for k, v in arguments.items() if k in _ASKED_WITH_EVERY_CALL}


def _with_program(program: str, arguments: dict[str, Any]) -> dict[str, Any]:
    command = arguments.get("command") or ""
    return {**arguments, "command": f"{program} {command}".strip()}


def _with_words_joined(arguments: dict[str, Any]) -> dict[str, Any]:
    """With the command as one text, where it came as the words of a program's start."""
    match arguments.get("command"):
        case [("bash" | "sh"), ("-c" | "-lc"), str(script)]:
            return {**arguments, "command": script}
        case [str(program), *_] as words if _is_patching(words) or (
            not re.search(r"\s", program) and all(_is_whole(word) for word in words)
        ):
            return {**arguments, "command": shlex.join(words)}
        case _:
            return arguments


def _is_patching(command: object) -> bool:
    """Whether a command is the program's start with which other products apply a patch."""
    match command:
        case [("apply_patch" | "applypatch"), str()]:
            return True
        case _:
            return False


def _is_whole(part: object) -> bool:
    """Whether it can be a word: what a text is cut into has blanks where it was cut."""
    return isinstance(part, str) and part == part.strip()


def _as_command(word: str, arguments: Mapping[str, Any]) -> str | None:
    """The shell command that a call of a tool named like a program stands for."""
    own = {k: v for k, v in arguments.items() if k not in _ASKED_WITH_EVERY_CALL}
    if word in _BARE_COMMANDS and not own:
        return word
    if word == "grep" and isinstance(own.get("pattern"), str):
        return _search_command(own["pattern"], own.get("path") or ".", own.get("include"))
    return None


def _search_command(pattern: str, path: str, include: str | None) -> str:
    """A search as the tool grep would do it, for a shell."""
    # What `-e` and `--` stand before is never taken for an option.
    if shutil.which("rg"):
        chosen = ["-g", include] if include else []
        return shlex.join(["rg", "-n", "-i", *chosen, "-e", pattern, "--", path])
    chosen = [f"--include={include}"] if include else []
    return shlex.join(["grep", "-rniIE", *chosen, "-e", pattern, "--", path])


def _unwrapped(arguments: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """The arguments that stand one level too deep, under a name that is none of theirs."""
    own = [name for name in arguments if name not in _ASKED_WITH_EVERY_CALL]
    if len(own) != 1 or own[0] in fields:
        return arguments
    inner = _decoded(arguments[own[0]])
    if not isinstance(inner, dict) or not any(name in fields for name in inner):
        return arguments
    return {**{k: v for k, v in arguments.items() if k != own[0]}, **inner}


def _fields(given: Mapping[str, Any], schema: Schema, definitions: Schema) -> dict[str, Any]:
    """`given` with the names and values that the fields of an object have."""
    fields, required = schema["properties"], schema.get("required", ())
    known = (*fields, *_ASKED_WITH_EVERY_CALL)
    mended: dict[str, Any] = {}
    for name, value in given.items():
        key = _meant_name(name, known, given)
        is_field = key in fields
        if value is None and not (key in required and is_field and _takes_null(fields[key])):
            continue
        if key not in known and _RESIDUE.search(key):
            continue
        mended.setdefault(key, _mended(value, fields[key], definitions) if is_field else value)
    return mended


def _meant_name(name: str, known: Collection[str], given: Mapping[str, Any]) -> str:
    """The one of `known` that `name` means, or `name`."""
    if name in known:
        return name
    free = [one for one in known if one not in given]
    if (snake := _snake(name)) in free:
        return snake
    for group in _SYNONYMS:
        meant = [one for one in group if one in free]
        if snake in group and len(meant) == 1:
            return meant[0]
    return next(iter(get_close_matches(snake, {"security_risk"} & set(free), cutoff=0.75)), name)


def _mended(value: Any, schema: Schema, definitions: Schema) -> Any:
    """`value` as `schema` wants it, where it can be read as nothing else."""
    branches = list(_branches(schema, definitions))
    of_type = {kind: branch for branch in branches for kind in _types(branch)}
    choices = [choice for branch in branches for choice in _choices(branch)]
    if choices:
        return _chosen(value, choices)
    if "string" in of_type:
        return value if "array" in of_type else _joined(value)
    if of_type.keys() & {"array", "object"}:
        value = _decoded(value)
    elif of_type.keys() & {"integer", "number", "boolean"}:
        return _literal(value)
    if "array" in of_type:
        items = [value] if isinstance(value, dict) and "object" not in of_type else value
        each = of_type["array"].get("items", {})
        is_list = isinstance(items, list) and isinstance(each, dict)
        return [_mended(item, each, definitions) for item in items] if is_list else items
    whole = of_type.get("object", {})
    has_fields = bool(whole.get("properties")) and isinstance(value, dict)
    return _fields(value, whole, definitions) if has_fields else value


def _takes_null(schema: Schema) -> bool:
    return "null" in {kind for branch in _branches(schema, {}) for kind in _types(branch)}


def _branches(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    """The forms that `schema` allows; a reference stands for what it names."""
    if not isinstance(schema, Mapping):  # true or false: anything, or nothing
        return
    if name := schema.get("$ref"):
        yield from _branches(definitions.get(name.rsplit("/", 1)[-1], {}), definitions)
    elif parts := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        for part in parts:
            yield from _branches(part, definitions)
    else:
        yield schema


def _types(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _choices(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", []))


def _decoded(value: Any) -> Any:
    """The list or object that was written as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        read = first_json(value)
    except ValueError:
        return value
    return read if isinstance(read, list | dict) else value


def _literal(value: Any) -> Any:
    """The number, true or false that was written as text."""
    if not isinstance(value, str):
        return value
    try:
        read = parsed_json(value.strip().lower())
    except ValueError:
        return value
    return read if isinstance(read, int | float) else value


def _joined(value: Any) -> Any:
    """A text that was sent in pieces."""
    is_pieces = isinstance(value, list) and all(isinstance(piece, str) for piece in value)
    return "".join(value) if is_pieces else value


def _chosen(value: Any, choices: Collection[Any]) -> Any:
    """The choice that `value` is in other letters."""
    if not isinstance(value, str) or value in choices:
        return value
    return next((choice for choice in choices if choice == _snake(value)), value)
