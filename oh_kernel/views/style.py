"""What do our views look like, in every theme and also where styles are stripped?

Colours are Jupyter's own CSS variables with a fallback, or translucent tints that work on light
and dark alike. They only repeat what a sign or a word says already.
"""

MUTED = "color:var(--jp-ui-font-color2,#767676)"
CODE_FONT = (
    "font-family:var(--jp-code-font-family,monospace);font-size:var(--jp-code-font-size,13px)"
)
BORDER = "1px solid var(--jp-border-color2,#9995)"

TURN = "max-width:100%;overflow-wrap:anywhere"
CALL = f"border:{BORDER};border-radius:4px;margin:4px 0;overflow:hidden"
SUMMARY = "cursor:pointer;padding:3px 8px;background:var(--jp-layout-color2,#8881)"
BODY = "padding:4px 8px"
PRE = (
    # Jupyter breaks words anywhere in preformatted text; paths and messages read badly then.
    f"{CODE_FONT};white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;"
    "margin:4px 0;padding:4px 6px;"
    "max-height:32em;overflow:auto;background:transparent;line-height:1.35"
)
FOOTER = f"{MUTED};border-top:{BORDER};margin-top:6px;padding-top:3px;font-size:90%"
QUOTE = f"{MUTED};border-left:3px solid var(--jp-border-color2,#9995);margin:4px 0;padding:0 8px"

ADDED = "background:#2ea04326"
REMOVED = "background:#f8514926"

STATE_COLOURS = {
    "ok": "color:var(--jp-success-color1,#388e3c)",
    "failed": "color:var(--jp-error-color1,#d32f2f)",
    "timed out": "color:var(--jp-error-color1,#d32f2f)",
    "rejected": "color:var(--jp-warn-color1,#b26a00)",
    "interrupted": "color:var(--jp-warn-color1,#b26a00)",
    "running": "color:var(--jp-info-color1,#0277bd)",
    "waiting": "color:var(--jp-warn-color1,#b26a00)",
}

# One letter a colour, for spans in HTML and for class names in the widget.
TOKEN_COLOURS = {
    "k": "var(--jp-mirror-editor-keyword-color,#00783e)",
    "s": "var(--jp-mirror-editor-string-color,#b5392e)",
    "c": "var(--jp-mirror-editor-comment-color,#4a8080)",
    "n": "var(--jp-mirror-editor-number-color,#3a8038)",
    "f": "var(--jp-mirror-editor-def-color,#3056d3)",
    "b": "var(--jp-mirror-editor-builtin-color,#00783e)",
}
