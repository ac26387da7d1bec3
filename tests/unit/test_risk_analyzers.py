"""The analyzers of risk agree with what people labelled, also where nobody who wrote them looked.

Only counts are asserted, so that a failure shows no text that is held back.
"""

import pytest

from oh_kernel.events import SecurityRisk
from oh_kernel.security.analyzers import assess
from oh_kernel.tools.ipython import IpythonAction
from oh_kernel.tools.terminal import TerminalAction
from tests.risk_corpus import LabelledText, Name, read_corpus

HIGH = SecurityRisk.HIGH


def judged(entry: LabelledText) -> SecurityRisk:
    action = (
        TerminalAction(command=entry.text)
        if entry.tool == "terminal"
        else IpythonAction(code=entry.text)
    )
    return assess(entry.tool, action, SecurityRisk.LOW).risk


@pytest.mark.parametrize(
    ("name", "recall", "precision"), [("known", 0.98, 0.95), ("held_back", 0.95, 0.80)]
)
def test_agrees_with_the_corpus(name: Name, recall: float, precision: float) -> None:
    pairs = [(entry.risk is HIGH, judged(entry) is HIGH) for entry in read_corpus(name)]
    right = sum(label and found for label, found in pairs)
    high, called_high = sum(label for label, _ in pairs), sum(found for _, found in pairs)
    counts = f"{right} of {high} found, {called_high} called HIGH"
    assert right / high >= recall and right / called_high >= precision, counts
