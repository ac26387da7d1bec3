"""How risky is a piece of Python? Its syntax tree is walked in the order in which it would run."""

import ast
import re
import warnings
from collections.abc import Iterable, Sequence

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.python import calls
from oh_kernel.security.python.values import Values
from oh_kernel.security.shell.model import Kind, Scope, Word

_SHOWS = re.compile(
    r"(?:print|pprint|pprint\.pp(?:rint)?|display|IPython\.display\.display|rich\.print"
    r"|warnings\.warn|repr"
    r"|(?:logging|log|logger|loguru\.logger|_log)(?:\.getLogger\(\))?\.(?:debug|info|warning"
    r"|error|critical|exception|log)"
    r"|logging\.getLogger\(\)\.\w+|sys\.std(?:out|err)\.write|.*\.write(?:lines)?"
    r"|.*\.write_text|.*\.write_bytes"
    r"|json\.dump|yaml\.\w*dump|pickle\.dump|.*\.to_(?:csv|json|excel|parquet|clipboard)"
    r"|pyperclip\.copy|st\.write|Markdown|HTML)$"
)
_DANGEROUS_NAMES = re.compile(
    r"\b(?:rmtree|unlink|removedirs|system|popen|exec|eval|getoutput|check_output|__import__"
    r"|push_to_hub|_exit|killpg"
    r"|drop_database|upload_file|marshal|DROP\s+TABLE|os\.remove|os\.kill|sendmail|environ)\b"
)


def python_findings(code: str, *, shows_last: bool = False) -> list[Finding]:
    """What `code` does; `shows_last`: the value of its last line is shown, as in a notebook.

    >>> [finding.reason for finding in python_findings("import shutil; shutil.rmtree('data')")]
    ['deletes folders']
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes in somebody's code
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return unreadable(code)
    analysis = PythonAnalysis()
    analysis.run(tree.body)
    if (
        shows_last
        and tree.body
        and isinstance(tree.body[-1], ast.Expr)
        and not code.rstrip().endswith(";")
    ):
        analysis.shown([tree.body[-1].value])
    return analysis.findings


def unreadable(code: str) -> list[Finding]:
    """What is seen in code that cannot be parsed: its lines one by one, and its worst word."""
    found = [medium("cannot be read as Python")]
    lines = [line.strip() for line in code.splitlines()]
    for line in lines if len(lines) > 1 else []:
        try:
            tree = ast.parse(line)
        except (SyntaxError, ValueError):
            continue
        analysis = PythonAnalysis()
        analysis.run(tree.body)
        found += analysis.findings
    if _DANGEROUS_NAMES.search(code):
        found.append(high("cannot be read and names what deletes or runs"))
    return found


class PythonAnalysis(ast.NodeVisitor):
    """One walk over a module: what was found, and what is known at this point."""

    def __init__(self) -> None:
        self.scope = Scope()
        self.values = Values(self.scope)
        self.databases: list[Word] = []
        """The databases that the code opens, by their addresses."""
        self.own_processes: set[str] = set()
        self._findings: dict[Finding, None] = {}

    @property
    def findings(self) -> list[Finding]:
        """What was found, each once."""
        return list(self._findings)

    @property
    def loops(self) -> int:
        """How many loops the walk is in."""
        return self.scope.loops

    def add(self, findings: Iterable[Finding]) -> None:
        """Remember findings."""
        self._findings.update(dict.fromkeys(findings))

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Walk statements one after another."""
        for statement in body:
            self.visit(statement)

    def shown(self, nodes: Iterable[ast.expr]) -> None:
        """The values of `nodes` are seen by whoever reads the cell's output."""
        for node in nodes:
            if self.values.kind(node) is Kind.SECRET:
                self.add([high("shows credentials")])

    # Names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._import(
                alias.asname or alias.name.split(".")[0],
                alias.name if alias.asname else alias.name.split(".")[0],
            )
            self._imported_download(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._import(alias.asname or alias.name, f"{node.module or ''}.{alias.name}".strip("."))
        self._imported_download(node.module or "")

    def _import(self, name: str, full: str) -> None:
        self.values.imports[name] = full
        self.values.variables.pop(name, None)

    def _imported_download(self, module: str) -> None:
        if module and self.scope.downloaded(module.replace(".", "/") + ".py"):
            self.add([high("runs what it downloads")])

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._assign(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._assign(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = self.values.word(node.target)
            more = self.values.word(node.value)
            flow = max(old.flow, more.flow, key=lambda flow: flow.kind)
            joined = Word(
                old.text + more.text, flow, old.variables + more.variables, is_joined=True
            )
            self.values.variables[node.target.id] = joined

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        self.add(calls.assigning(self, target, value))
        if (
            isinstance(target, ast.Name)
            and isinstance(value, ast.Call)
            and re.search(
                r"Popen|Process|Pool|start_\w+|Thread|subprocess", self.values.dotted(value.func)
            )
        ):
            self.own_processes.add(target.id)
        self.values.bind(target, value)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.add(calls.forgetting(target))

    # Blocks

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.values.bind(node.target, node.iter, each=True)
        self._loop(node.body)
        self.run(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._loop(node.body)
        self.run(node.orelse)

    def _loop(self, body: Sequence[ast.stmt]) -> None:
        self.scope.loops += 1
        self.run(body)
        self.scope.loops -= 1

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.values.bind(item.optional_vars, item.context_expr)
        self.run(node.body)

    visit_AsyncWith = visit_With

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A definition counts as its call: the later call shows nothing."""
        before = dict(self.values.variables)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            self.values.variables.pop(argument.arg, None)
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.run(node.body)
        self.values.variables = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ListComp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        for generator in node.generators:
            self.visit(generator.iter)
        self.values.bind_comprehension(node.generators)
        self.scope.loops += 1
        self.generic_visit(node)
        self.scope.loops -= 1

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    # Deeds

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = self.values.dotted(node.func)
        self.add(calls.findings(self, node, name))
        if _SHOWS.match(name):
            self.shown([*node.args, *(one.value for one in node.keywords)])

    def visit_Raise(self, node: ast.Raise) -> None:
        self.generic_visit(node)
        if isinstance(node.exc, ast.Call):
            self.shown(node.exc.args)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        self.add(calls.naming(node))
