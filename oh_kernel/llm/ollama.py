"""Which of its models can call tools? Ollama itself knows."""

import asyncio
import importlib

TIMEOUT_S = 3.0


async def has_tools(base_url: str, name: str) -> bool | None:
    """Whether the model `name` takes tools, as the server at `base_url` says; None: it does not."""
    httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")  # with the model library
    root = base_url.rstrip("/").removesuffix("/v1")
    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:
            response = await client.post(f"{root}/api/show", json={"model": name})
            response.raise_for_status()
            said = response.json()
    except (httpx2.HTTPError, ValueError):
        return None  # whatever is wrong is told when the model is asked
    capabilities = said.get("capabilities") if isinstance(said, dict) else None
    return "tools" in capabilities if isinstance(capabilities, list) else None
