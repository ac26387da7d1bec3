"""What is the value of an expression, as far as the code itself tells?

Values are the words that the shell analyzer knows: a text with `$NAME` for what is not known, and
the kind of what is in it (a download, decoded text, a secret, the user's data).
"""

import ast
import re
from collections.abc import Iterable

from oh_kernel.security.findings import TooInvolved
from oh_kernel.security.places import is_secret_variable
from oh_kernel.security.python.results import result_of, secret, unknown
from oh_kernel.security.python.tables import SECRET_NAME, USUAL_NAMES
from oh_kernel.security.shell.model import Flow, Kind, Scope, Word, merged

_DEEPEST = 14
_MOST_LOOKS = 100_000


class Values:
    """What is known of names at this point of the code."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.imports: dict[str, str] = dict(USUAL_NAMES)
        self.variables: dict[str, ast.expr | Word] = {}
        self._depth = 0
        self._looked = 0

    def dotted(self, node: ast.expr) -> str:
        """The full name of a function or attribute: `sp.run` is `subprocess.run`.

        A variable is named by what it was made of: after `s3 = boto3.client("s3")` it is
        `boto3.client()`.
        """
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=base, attr=attribute):
                return f"{self.dotted(base)}.{attribute}"
            case ast.Call(func=function):
                return f"{self.dotted(function)}()"
            case ast.Await(value=value):
                return self.dotted(value)
            case ast.Subscript(value=base):
                return f"{self.dotted(base)}[]"
            case ast.Constant(value=str()):
                return "str()"
        return "?"

    def _name(self, name: str) -> str:
        if name in self.imports and name not in self.variables:
            return self.imports[name]
        value = self.variables.get(name)
        if (
            isinstance(value, ast.Call | ast.Attribute | ast.Name | ast.Await)
            and self._depth < _DEEPEST
        ):
            self._depth += 1
            found = self.dotted(value)
            self._depth -= 1
            return found
        return name

    def kind(self, node: ast.expr | None) -> Kind:
        """What the value holds."""
        return Kind.NOTHING if node is None else self.word(node).flow.kind

    def word(self, node: ast.expr) -> Word:
        """The value of `node` as a word."""
        self._looked += 1
        if self._looked > _MOST_LOOKS:
            raise TooInvolved("values are made of values over and over")
        if self._depth >= _DEEPEST:
            return unknown("...")
        self._depth += 1
        word = self._word(node)
        self._depth -= 1
        return word

    def _word(self, node: ast.expr) -> Word:
        match node:
            case ast.Constant(value=value):
                text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
                return Word(text, Flow(Kind.TEXT, text))
            case ast.JoinedStr(values=parts):
                return self.joined([self.word(part) for part in parts], "")
            case (
                ast.FormattedValue(value=value) | ast.Await(value=value) | ast.Starred(value=value)
            ):
                return self.word(value)
            case ast.NamedExpr(value=value):
                return self.word(value)
            case ast.Name(id=name):
                return self._variable(name)
            case ast.BinOp(left=left, op=operation, right=right):
                return self._operation(left, operation, right)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return result_of(self, node)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Word("0", Flow(Kind.PLAIN))
            case ast.IfExp(body=body, orelse=other):
                return self.joined([self.word(body), self.word(other)], " ")
            case ast.ListComp(elt=made) | ast.SetComp(elt=made) | ast.GeneratorExp(elt=made):
                self.bind_comprehension(node.generators)
                return self.word(made)
            case ast.DictComp(key=key, value=value):
                self.bind_comprehension(node.generators)
                return self.joined([self.word(key), self.word(value)], " ")
            case ast.Lambda():
                return Word("", Flow(Kind.NOTHING))
        return self.joined(
            [self.word(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)], " "
        )

    def bind_comprehension(self, generators: Iterable[ast.comprehension]) -> None:
        """Bind the names of `for` parts to what they go over."""
        for generator in generators:
            self.bind(generator.target, generator.iter, each=True)

    def bind(self, target: ast.expr, value: ast.expr | Word, *, each: bool = False) -> None:
        """Remember what `target` is bound to; `each`: to one element of `value` after another."""
        match target:
            case ast.Name(id=name):
                if each or _refers_to(value, name):
                    word = value if isinstance(value, Word) else self.word(value)
                    self.variables[name] = _element(word) if each else word
                else:
                    self.variables[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = (
                    value.elts if isinstance(value, ast.Tuple | ast.List) and not each else None
                )
                for index, one in enumerate(targets):
                    same = values is not None and len(values) == len(targets)
                    self.bind(one, values[index] if same and values else value, each=each)
            case ast.Starred(value=inner):
                self.bind(inner, value, each=each)

    def _variable(self, name: str) -> Word:
        value = self.variables.get(name)
        if isinstance(value, Word):
            return value
        if value is not None:
            return self.word(value)
        if name == "__file__":
            return Word("script.py", Flow(Kind.PLAIN))
        if name in self.imports and self.imports[name] == "os.environ":
            return secret("environ")
        if SECRET_NAME.search(name) or (name.isupper() and is_secret_variable(name)):
            return secret(name)
        return unknown(name)

    def _operation(self, left: ast.expr, operation: ast.operator, right: ast.expr) -> Word:
        words = [self.word(left), self.word(right)]
        if isinstance(operation, ast.Div):
            return self.joined(words, "/")
        if isinstance(operation, ast.Mod):
            return self._filled(words)
        if isinstance(operation, ast.Add):
            both = all(
                isinstance(one, ast.Constant) and isinstance(one.value, str)
                for one in (left, right)
            )
            word = self.joined(words, "")
            return Word(word.text, word.flow, word.variables, word.is_wild, word.is_joined or both)
        return self.joined(words, " ")

    def _filled(self, words: list[Word]) -> Word:
        text = re.sub(r"%[-\d.]*[sdrif]", lambda _: words[1].text, words[0].text)
        merged_word = self.joined(words, " ")
        return Word(text, merged_word.flow, merged_word.variables)

    def joined(self, words: list[Word], between: str) -> Word:
        """One word of several."""
        text = between.join(word.text for word in words if word.text or between != " ")
        flow = merged(word.flow for word in words)
        if flow.kind is Kind.TEXT:
            flow = Flow(Kind.TEXT, text)
        names = tuple(name for word in words for name in word.variables)
        return Word(
            text, flow, names, any(w.is_wild for w in words), any(w.is_joined for w in words)
        )

    def _attribute(self, node: ast.Attribute) -> Word:
        name = self.dotted(node)
        if name in ("os.environ", "os.environb"):
            return secret("environ")
        if name == "sys.executable":
            return Word("python", Flow(Kind.TEXT, "python"))
        if node.attr in (
            "parent",
            "name",
            "stem",
            "path",
            "text",
            "content",
            "stdout",
            "raw",
            "output",
            "url",
            "body",
        ):
            return self.word(node.value)
        base = self.word(node.value)
        if base.flow.kind in (Kind.DOWNLOAD, Kind.SECRET, Kind.DECODED):
            return base
        return secret(node.attr) if SECRET_NAME.search(node.attr) else unknown(name)

    def _subscript(self, node: ast.Subscript) -> Word:
        if self.dotted(node.value) in ("os.environ", "os.environb"):
            return self.environment(node.slice)
        base = self.word(node.value)
        match node.slice:
            case ast.Slice(step=ast.UnaryOp(op=ast.USub())):
                return Word(base.text[::-1], Flow(Kind.DECODED))
        if isinstance(node.value, ast.List | ast.Tuple) or base.flow.kind is not Kind.TEXT:
            return base
        return Word(base.text, base.flow, base.variables, base.is_wild)

    def environment(self, name: ast.expr | None) -> Word:
        """The value of a variable of the environment."""
        word = self.word(name) if name is not None else Word("environ")
        if is_secret_variable(word.text) or not word.is_known:
            return secret(word.text)
        return Word(f"${word.text}", Flow(Kind.PLAIN), (word.text,))


def _element(word: Word) -> Word:
    """One of what a word stands for."""
    return Word(word.text, word.flow, word.variables, word.is_wild)


def _refers_to(value: ast.expr | Word, name: str) -> bool:
    """Whether the new value of a name is made of its old one, as in `x = x + 1`."""
    if isinstance(value, Word):
        return False
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(value))
