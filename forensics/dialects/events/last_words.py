"""What the last line of a log says of a whole program: that it is done, what time it took, what it saved in the end.

The same words further up are about a part. The line is read without what a logger prints before a message (a time, a
level, a module) and without its ornament; where they came several times before, they are about a part of it, too.
"""

from __future__ import annotations

import re

from forensics.knowledge.errors import ErrorLine, closing
from forensics.knowledge.vocabulary import in_english, is_unparted, words_for
from forensics.patterns import compiled, lazily

#: So often the words of an epoch came before those of the last one; of attempts in one log there are fewer.
_OFTEN = 3
_ORNAMENT = " \t*=#~-.!>|_:✅🎉✨\u2713\u2714"
#: Where a handler that is as wide as the terminal prints who logged the line, or values behind an event.
_TAIL = lazily(r" {2,}(?:[\w./<>]+:\d+|\w+=\S+(?: \w+=\S+)*)$")
_LAST_WORD = lazily(r"\w+\W*$")
#: A longer line has no last words.
_MOST_BYTES = 1_000
_NUMBERS = lazily(r"\d+")


def last_words(line: str, earlier: bytes) -> ErrorLine | None:
    """Give the row of the table of errors that a log's last line is; `earlier` are the lines before it.

    Where the last line says only what was kept in the end, it is the line before that one.
    """
    message = message_of(line)
    row = _closing(message)
    if row is None and re.search(words_for("kept_in_the_end"), message) is not None:
        earlier, _, text = earlier.rstrip().rpartition(b"\n")
        message = message_of(text[-_MOST_BYTES:].decode("utf-8", "replace"))
        row = _closing(message)
    if row is None:
        return None
    masked = _NUMBERS.sub("0", message)
    start = re.split(r"\d", message, maxsplit=1)[0].encode()
    before = (one.decode("utf-8", "replace") for one in earlier.splitlines() if start in one) if start else ()
    return row if sum(_NUMBERS.sub("0", message_of(one)) == masked for one in before) < _OFTEN else None


def _closing(message: str) -> ErrorLine | None:
    english = in_english(message)
    # a word of a script without blanks that no table knows may turn the others round: `训练完成后` is "after training"
    said = {message} if is_unparted(english) else {message, english}
    return next((row for row in closing() if any(map(row.compiled.search, said))), None)


def message_of(line: str) -> str:
    """The words of a line without what its logger puts around them."""
    text = _TAIL.sub("", line.strip())
    last = _LAST_WORD.search(text)  # no part of the head: "SUCCESS" alone is no level
    head = compiled(words_for("head_of_a_message")).match(text, 0, last.start() if last is not None else len(text))
    return text[head.end() if head is not None else 0 :].strip(_ORNAMENT)
