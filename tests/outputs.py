"""What a cell shows in the end: its outputs with all updates applied, as a front end saves them."""

from collections.abc import Sequence
from typing import Any


def final_bundles(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The MIME bundles of the displays and results, in order; text of streams as text/plain.

    A stream comes in pieces of any size; those that follow each other are one output.
    """
    bundles: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    stream = ""  # the name of the stream that is the last output
    for message in messages:
        content = message["content"]
        shown = (content.get("transient") or {}).get("display_id")
        match message["msg_type"]:
            case "display_data" | "execute_result":
                if shown:
                    places[shown] = len(bundles)
                bundles.append(content["data"])
                stream = ""
            case "update_display_data":
                bundles[places[shown]] = content["data"]
            case "stream" if content["name"] == stream:
                bundles[-1]["text/plain"] += content["text"]
            case "stream":
                bundles.append({"text/plain": content["text"]})
                stream = content["name"]
            case "clear_output":
                bundles.clear()
                places.clear()
                stream = ""
    return bundles


def final_text(messages: Sequence[dict[str, Any]]) -> str:
    """The plain text of what is shown in the end."""
    return "\n".join(str(bundle.get("text/plain", "")) for bundle in final_bundles(messages))


def final_html(messages: Sequence[dict[str, Any]]) -> str:
    """The HTML of what is shown in the end."""
    return "\n".join(str(bundle.get("text/html", "")) for bundle in final_bundles(messages))
