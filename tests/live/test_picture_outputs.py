"""Field case LM-05, the part with the agent's Python: plots and pictures of any size."""

import io
from pathlib import Path

import pytest
from PIL import Image

from oh_kernel.events import ImageContent, ObservationEvent, TextContent
from tests.conversations import Scripted, call, calls, say

TALL = "from IPython.display import Image, display; display(Image('tall.png'))"
WIDE = (
    "import matplotlib.pyplot as plt; plt.figure(figsize=(200, 2), dpi=100); "
    "plt.plot([1, 3, 2]); plt.show()"
)


@pytest.mark.parametrize("code", [TALL, WIDE])
def test_LM_05_a_picture_that_is_too_large_is_told_in_words(tmp_path: Path, code: str) -> None:
    out = io.BytesIO()
    Image.new("RGB", (200, 9000), 90).save(out, "PNG")
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "tall.png").write_bytes(out.getvalue())
    turns = [calls(call("ipython", {"code": code}, id="a")), say("done")]
    with Scripted(workspace, turns) as scripted:
        assert scripted.ask() == "finished"
        result = scripted.results["a"]
        assert isinstance(result, ObservationEvent)
        assert not result.observation.is_error, result.observation.text
        content = result.observation.content
        texts = [part.text for part in content if isinstance(part, TextContent)]
        assert not any(isinstance(part, ImageContent) for part in content)
        assert any("too many to be sent to you" in text for text in texts)
        assert all(len(text) < 500 for text in texts), "no base64 as text"
