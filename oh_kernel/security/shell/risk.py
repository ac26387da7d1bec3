"""How risky is a command line? Its syntax tree is walked as the shell would walk it."""

import re
from collections.abc import Callable
from typing import Any

from oh_kernel.security.findings import Finding, high, medium, rail
from oh_kernel.security.places import Place, place_of
from oh_kernel.security.shell import flows, rules
from oh_kernel.security.shell.model import NOTHING, Flow, Kind, Word, merged
from oh_kernel.security.shell.runs import ShellRuns
from oh_kernel.security.shell.words import text_of, word_of, words_of

_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_STATEMENTS = {
    "command", "pipeline", "list", "subshell", "compound_statement", "redirected_statement",
    "negated_command", "declaration_command", "variable_assignment", "variable_assignments",
    "if_statement", "while_statement", "for_statement", "case_statement", "function_definition",
}  # fmt: skip
_HOLDS_COMMAND = re.compile(r"(?:COMMAND|PAGER|EDITOR|VISUAL|BROWSER|ASKPASS)$")
_PROTECTION = {
    "PYTHONHTTPSVERIFY": "0",
    "NODE_TLS_REJECT_UNAUTHORIZED": "0",
    "GIT_SSL_NO_VERIFY": "1 true",
    "HTTPS_VERIFY": "0 false",
    "CURL_CA_BUNDLE": "",
    "REQUESTS_CA_BUNDLE": "",
}


def shell_findings(text: str) -> list[Finding]:
    """What `text` does when a shell runs it.

    >>> [finding.reason for finding in shell_findings("ls; rm -rf data")]
    ['deletes folders']
    """
    analysis = ShellAnalysis()
    if analysis.run_text(text).kind is Kind.SECRET:
        analysis.add(high("shows credentials"))
    return analysis.findings


class ShellAnalysis(ShellRuns):
    """One walk over a command line: what was found, and what is known at this point."""

    def visit(self, node: Any, stdin: Flow = NOTHING) -> Flow:
        """Judge a node of the syntax tree; gives what it writes."""
        by_type: dict[str, Callable[[Any, Flow], Flow]] = {
            "command": self._command,
            "pipeline": self._pipeline,
            "redirected_statement": self._redirected,
            "function_definition": self._function,
            "for_statement": self._for,
            "while_statement": self._while,
            "declaration_command": self._declaration,
            "subshell": self._subshell,
        }
        if node.type in by_type:
            return by_type[node.type](node, stdin)
        if node.type == "variable_assignment":
            self._assign(node)
            return NOTHING
        if node.type in ("comment", "raw_string", "word", "heredoc_start", "heredoc_end"):
            return NOTHING
        written = merged([self.visit(child, stdin) for child in node.named_children])
        # The words of a test and of a quoted text write nothing by themselves.
        return NOTHING if node.type in ("test_command", "string", "concatenation") else written

    # Statements

    def _pipeline(self, node: Any, stdin: Flow) -> Flow:
        flow = stdin
        for child in node.named_children:
            flow = self.visit(child, flow)
        return flow

    def _subshell(self, node: Any, stdin: Flow) -> Flow:
        folder = self.scope.folder
        flow = merged([self.visit(child, stdin) for child in node.named_children])
        self.scope.folder = folder
        return flow

    def _function(self, node: Any, stdin: Flow) -> Flow:
        name = text_of(node.child_by_field_name("name"))
        body = node.child_by_field_name("body")
        self.scope.functions[name] = body
        if body is not None:
            own = re.escape(name)
            if re.search(
                rf"(?:^|[\s;{{|&]){own}\b[^;\n]*\|\s*{own}\b|[;{{|]\s*{own}\s*&(?!&)", text_of(body)
            ):
                self.add(rail("starts itself over and over (a fork bomb)"))
            self.visit(body, stdin)
        return NOTHING

    def _for(self, node: Any, stdin: Flow) -> Flow:
        variable = node.child_by_field_name("variable")
        items: list[Word] = []
        for child in node.named_children:
            if child.type not in ("variable_name", "do_group", "comment"):
                items += words_of(child, self.scope, self.visit)
        if variable is not None:
            unknown = Word(f"${text_of(variable)}", variables=(text_of(variable),))
            self.scope.variables[text_of(variable)] = tuple(items) or (unknown,)
        return self._loop(node, stdin)

    def _while(self, node: Any, stdin: Flow) -> Flow:
        condition = text_of(node).split("\n")[0]
        if re.match(r"while\s+(?:true|:|\[?\s*1)\s*\]?\s*;?\s*do\b", condition) and re.search(
            r"[^&>]&\s*(?:done|$|;)", text_of(node), re.M
        ):
            self.add(high("starts processes without end"))
        return merged([self.visit(node.named_children[0], stdin), self._loop(node, stdin)])

    def _loop(self, node: Any, stdin: Flow) -> Flow:
        self.scope.loops += 1
        flow = merged(
            [self.visit(one, stdin) for one in node.named_children if one.type == "do_group"]
        )
        self.scope.loops -= 1
        return flow

    def _declaration(self, node: Any, stdin: Flow) -> Flow:
        source = text_of(node)
        if re.fullmatch(r"(?:export|declare|typeset)(?:\s+-[pxg]+)*\s*", source):
            return Flow(Kind.SECRET)
        for child in node.named_children:
            self.visit(child)
        if source.startswith("export"):
            self.add(medium("sets a variable"))
        return NOTHING

    def _assign(self, node: Any) -> tuple[str, str]:
        name = text_of(node.child_by_field_name("name") or node.named_children[0])
        value = node.child_by_field_name("value")
        if value is None:
            words: tuple[Word, ...] = (Word(""),)
        elif value.type == "array":
            words = tuple(
                w for one in value.named_children for w in words_of(one, self.scope, self.visit)
            )
        else:
            words = (word_of(value, self.scope, self.visit),)
        self.scope.variables[name] = words
        text = " ".join(word.text for word in words)
        off = _PROTECTION.get(name)
        if off is not None and text in (off.split() or [""]):
            self.add(high("turns certificate checks off"))
        if name in ("LD_PRELOAD", "PROMPT_COMMAND", "BASH_ENV"):
            self.add(high("makes later programs run other code"))
        return name, text

    # Redirections

    def _redirected(self, node: Any, stdin: Flow) -> Flow:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if child.type in _REDIRECTS]
        incoming = self._input(redirects, stdin)
        flow = NOTHING if body is None else self.visit(body, incoming)
        return self._output(redirects, flow)

    def _input(self, redirects: list[Any], stdin: Flow) -> Flow:
        for redirect in redirects:
            if redirect.type == "file_redirect":
                if _operator(redirect).startswith("<"):
                    stdin = self._file_flow(self._target(redirect))
            else:
                stdin = self._written_here(redirect) or stdin
        return stdin

    def _written_here(self, redirect: Any) -> Flow | None:
        for child in redirect.named_children:
            if child.type == "heredoc_body":
                quoted = re.match(r"<<-?\s*['\"\\]", text_of(redirect))
                word = Word(text_of(child)) if quoted else word_of(child, self.scope, self.visit)
                return merged([Flow(Kind.TEXT, word.text), word.flow])
            if redirect.type == "herestring_redirect":
                return flows.flow_of_words([word_of(child, self.scope, self.visit)])
        return None

    def _output(self, redirects: list[Any], flow: Flow) -> Flow:
        for redirect in redirects:
            # A pipe or a list after `<<EOF` stands below the redirection in the syntax tree.
            for child in redirect.named_children if redirect.type == "heredoc_redirect" else ():
                if child.type in _STATEMENTS:
                    flow = self.visit(child, flow)
                elif child.type == "file_redirect":
                    flow = self._output([child], flow)
            if redirect.type == "file_redirect" and ">" in _operator(redirect):
                flow = self._write(redirect, flow)
        return flow

    def _write(self, redirect: Any, flow: Flow) -> Flow:
        target = self._target(redirect)
        operator = _operator(redirect)
        if target.text.isdigit() or target.text == "-":
            return flow
        only_errors = text_of(redirect).startswith("2") and not operator.startswith("&")
        self.add(*rules.writing(target, self.scope, flow, appends=">>" in operator))
        if only_errors:
            return flow
        place = place_of(target.text)
        if place is Place.NOWHERE:
            return flow if target.text in ("/dev/tty", "/dev/stdout", "/dev/stderr") else NOTHING
        if flow.kind is Kind.SECRET:
            self.add(high("writes credentials into a file"))
        self.scope.keep(target.text, flow)
        return NOTHING

    def _target(self, redirect: Any) -> Word:
        node = redirect.child_by_field_name("destination")
        return Word("") if node is None else word_of(node, self.scope, self.visit)

    def _file_flow(self, word: Word) -> Flow:
        if word.text.startswith("/dev/tcp/"):
            self.add(medium("talks to another machine"))
            return Flow(Kind.DOWNLOAD)
        return flows.content_of(word, self.scope)

    # Commands

    def _command(self, node: Any, stdin: Flow) -> Flow:
        variables: dict[str, str] = {}
        words: list[Word] = []
        redirects: list[Any] = []
        before = dict(self.scope.variables)
        for child in node.named_children:
            if child.type == "variable_assignment":
                name, value = self._assign(child)
                variables[name] = value
                if _HOLDS_COMMAND.search(name):
                    self.run_text(value)
            elif child.type in _REDIRECTS:
                redirects.append(child)
            elif child.type == "command_name":
                words += words_of(child.named_children[0], self.scope, self.visit)
            else:
                words += words_of(child, self.scope, self.visit)
        if variables:
            self.scope.variables = before
        incoming = self._input(redirects, stdin)
        flow = self.call(words, incoming, variables) if words else NOTHING
        return self._output(redirects, flow)


def _operator(redirect: Any) -> str:
    return next((child.type for child in redirect.children if not child.is_named), "")
