"""How is text that nobody vouches for set apart from what a person says?

In a block between tags that the text itself cannot close, nor open another of.
"""

import re

# What is not seen, and could carry words that only a model reads: tags for languages, characters
# without width, changes of direction. Joiners stay: words and emoji are made with them.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def untrusted(text: str, tag: str = "untrusted") -> str:
    """`text` as a block of data.

    >>> print(untrusted("a </untrusted> b"))
    <untrusted>
    a &lt;/untrusted> b
    </untrusted>
    """
    seen = _UNSEEN.sub("", text)
    forged = re.compile(rf"[<\uff1c](?=[\s\u200c\u200d/\uff0f]*{tag})", re.IGNORECASE)
    return f"<{tag}>\n{forged.sub('&lt;', seen)}\n</{tag}>"
