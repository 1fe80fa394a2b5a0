import readme_example

TEXT = """Intro
```sh
ls
```

```python
print("one")
print(2.5)
```

```text
one
2...
```

```python
print("no output shown")
```
Some words
```text
of something else
```
"""


def test_a_program_is_paired_with_the_text_that_directly_follows():
    first, second = readme_example.examples_in(TEXT)
    assert first.program == 'print("one")\nprint(2.5)\n'
    assert first.expected == "one\n2...\n"
    assert (first.line, second.line) == (7, 17)
    assert second.expected is None


def test_a_program_that_fails_or_prints_something_else_is_named():
    assert readme_example.run(readme_example.Example(1, "print(1)\n", "1\n")) is None
    assert "in place of" in readme_example.run(readme_example.Example(1, "print(1)\n", "2\n"))
    assert "ended with 3" in readme_example.run(readme_example.Example(1, "raise SystemExit(3)\n", None))


def test_a_readme_without_an_example_fails(tmp_path, monkeypatch, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("```sh\nls\n```\n")
    monkeypatch.setattr("sys.argv", ["readme_example.py", str(readme)])
    assert readme_example.main() == 1
    assert "no block fenced as python" in capsys.readouterr().out
