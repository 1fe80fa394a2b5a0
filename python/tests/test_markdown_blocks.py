"""What is found of a page's blocks."""

from __future__ import annotations

import pytest
from markdown_blocks import UnclosedBlockError, agrees, blocks_in, occurs

PAGE = """Intro
```sh
ls
```

```python { .run }
print("one")
```

```text
one
2...
```

- in a list

  ```python
  if True:
      print("two")
  ```
Some words
```text
of something else
```
"""


def test_a_block_is_paired_with_the_text_that_directly_follows() -> None:
    shell, marked, indented = (block for block in blocks_in(PAGE) if block.language != "text")
    assert (shell.language, shell.marks, shell.text, shell.shown) == ("sh", None, "ls\n", None)
    assert (marked.marks, marked.line, marked.shown) == (" .run ", 6, "one\n2...\n")
    assert (indented.text, indented.shown) == ('if True:\n    print("two")\n', None)


def test_a_block_without_an_end_is_an_error() -> None:
    with pytest.raises(UnclosedBlockError, match="line 2: the block has no end"):
        blocks_in("words\n```sh\nls\n")


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert agrees("a ... z\n", "a b\nc z\n")
    assert agrees("a.b", "a.b\n\n")
    assert not agrees("a.b", "axb")
    assert not agrees("a", "a b")


def test_what_is_shown_may_be_a_part_of_what_is_printed() -> None:
    assert occurs("b ... d\n", "a b c\nd d e\n")
    assert not occurs("d ... b", "a b c d")
    assert not occurs("a.c", "abc")
