"""Reading and editing text files without losing a byte of what was not edited."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentskills.editing import (
    FileText,
    printable,
)
from agentskills.errors import (
    BinaryFile,
    EditingError,
    LineOutOfRange,
    ManyMatches,
    NoMatch,
    NotEncodable,
)

MARKS = {
    "utf-8": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\0\0",
    "utf-32-be": b"\0\0\xfe\xff",
}


# The first legacy file loads tables, and the machine may be busy.
unhurried = settings(deadline=None)


def text_of(data: bytes) -> FileText:
    return FileText.from_bytes("file.txt", data)


# Lines of one file, each with its own ending; "@@" marks the place of the edit.
LINE = st.text(
    st.characters(codec="latin-1", exclude_characters="\r\n@", exclude_categories=["Cc"]),
    max_size=8,
)
ENDING = st.sampled_from(["\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, bytes, str, str]:
    """What stands before and after the place of an edit, the encoding, and the ending there."""
    encoding, marked = draw(
        st.sampled_from(
            [("utf-8", False), ("latin-1", False), *((name, True) for name in MARKS)],
        )
    )
    uniform = draw(st.sampled_from(["\n", "\r\n", None]))
    ending = st.just(uniform) if uniform else ENDING
    before = "".join(draw(st.lists(st.builds(str.__add__, LINE, ending), max_size=5)))
    after = "".join(draw(st.lists(st.builds(str.__add__, LINE, ending), max_size=5)))
    here = draw(ending)
    last = draw(LINE)  # with or without a final newline
    mark = MARKS[encoding] if marked else b""
    head = mark + (before + draw(LINE) + " ").encode(encoding)
    tail = (" " + draw(LINE) + here + after + last).encode(encoding)
    return head, tail, encoding, here


@unhurried
@given(files(), st.sampled_from(["", "x", "x\ny", "x\n", "\nx", "a\r\nb"]))
def test_bytes_outside_the_edit_never_change(file: tuple[bytes, bytes, str, str], new: str) -> None:
    head, tail, encoding, ending = file
    edited = text_of(head + "@@".encode(encoding) + tail).replaced("@@", new)
    middle = new.replace("\r\n", "\n").replace("\n", ending).encode(encoding)
    assert edited.data == head + middle + tail


@unhurried
@given(st.binary(max_size=200), st.binary(max_size=200))
def test_stray_bytes_survive_an_edit_beside_them(head: bytes, tail: bytes) -> None:
    data = head + b"\n@@key = 1\n" + tail
    try:
        file = text_of(data)
        assume(not file.charset.is_wide)  # such a mark makes other characters of the line
        edited = file.replaced("@@key = 1", "@@key = 2")
    except (BinaryFile, ManyMatches):
        return
    assert edited.data == data.replace(b"@@key = 1", b"@@key = 2")


@unhurried
@given(files(), st.integers(0, 12), st.sampled_from(["x", "x\ny", "x\n", ""]))
def test_inserted_lines_stand_alone(
    file: tuple[bytes, bytes, str, str], after_line: int, new: str
) -> None:
    head, tail, _, _ = file
    was = text_of(head + tail)
    after_line = min(after_line, len(was.lines))
    edited = was.inserted(after_line, new)
    added = new.removesuffix("\n").split("\n")
    assert edited.lines[:after_line] == was.lines[:after_line]
    assert edited.lines[after_line : after_line + len(added)] == added or edited.text == ""
    assert edited.lines[after_line + len(added) :] == was.lines[after_line:]


@unhurried
@given(files(), st.sampled_from(["one\n\ntwo", "x\n", "x"]))
def test_what_an_edit_did_can_be_undone_by_the_opposite_edit(
    file: tuple[bytes, bytes, str, str], new: str
) -> None:
    head, tail, encoding, _ = file
    was = text_of(head + "@@".encode(encoding) + tail)
    edited = was.replaced("@@", new)
    assert edited.spliced(0, len(edited.text), was.text).data == was.data


@pytest.mark.parametrize("encoding", ["cp1251", "koi8_r", "cp932", "euc_jp", "gb18030", "cp949"])
def test_legacy_encodings_are_recognised_and_kept(encoding: str) -> None:
    words = {
        "cp1251": "Привет, мир. Это текст на русском языке",
        "koi8_r": "Привет, мир. Это текст на русском языке",
        "cp932": "日本語のテキストです。これはテストです。",
        "euc_jp": "日本語のテキストです。これはテストです。",
        "gb18030": "这是一个中文文本文件。测试",
        "cp949": "안녕하세요 이것은 한국어 텍스트입니다",
    }[encoding]
    data = f"# {words}\nn = 1\n# {words}\n".encode(encoding)
    file = text_of(data)
    assert words in file.text
    assert file.replaced("n = 1", "n = 22").data == data.replace(b"n = 1", b"n = 22")
    assert file.replaced("n = 1", words).data == data.replace(b"n = 1", words.encode(encoding))


def test_western_text_is_read_as_cp1252() -> None:
    assert "réglages" in text_of(b"; r\xe9glages\nowner = Zo\xeb\n").text
    assert "niño" in text_of("El niño comió piñas “en” España".encode("cp1252")).text


def test_one_stray_byte_in_utf8_does_not_change_how_the_rest_is_read() -> None:
    file = text_of("naïve café\n".encode() + b"broken \xe9 here\n")
    assert file.lines == ["naïve café", "broken \udce9 here"]
    assert printable(file.lines[1]) == "broken \\xe9 here"
    assert file.replaced("naïve", "naïf").data == "naïf café\n".encode() + b"broken \xe9 here\n"


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(NotEncodable, match="cp1252"):
        text_of("année\nx\n".encode("cp1252")).replaced("x", "中")


def test_a_lone_surrogate_from_a_model_never_becomes_a_raw_byte() -> None:
    with pytest.raises(NotEncodable):
        text_of(b"x\n").replaced("x", "\udce9")


def test_an_edit_that_would_join_stray_bytes_to_a_character_is_refused() -> None:
    file = text_of("üüüü".encode() + b" \xc3-\xa9\n")
    with pytest.raises(EditingError, match="alter the text beside it"):
        file.replaced("-", "")


def test_old_macintosh_endings() -> None:
    file = text_of(b"one\rtwo\rthree\r")
    assert file.lines == ["one", "two", "three"]
    assert file.replaced("one\ntwo", "one\n2\n2b").data == b"one\r2\r2b\rthree\r"


def test_a_lone_carriage_return_in_a_file_of_line_feeds_is_part_of_its_line() -> None:
    file = text_of(b"10%\r20%\nend\n")
    assert file.lines == ["10%\r20%", "end"]
    assert file.replaced("end", "done").data == b"10%\r20%\ndone\n"


def test_form_feeds_and_unicode_separators_end_no_line() -> None:
    assert len(text_of("a\x0cb\x0bc\u2028d\x85e\n".encode()).lines) == 1


def test_mixed_endings_new_text_takes_that_of_its_line() -> None:
    file = text_of(b"a\r\nb\nc\r\n")
    assert file.replaced("b", "b\nb2").data == b"a\r\nb\nb2\nc\r\n"
    assert file.replaced("c", "c\nc2").data == b"a\r\nb\nc\r\nc2\r\n"
    assert file.replaced("a\nb\nc", "a\nB\nc").data == b"a\r\nB\nc\r\n"
    assert file.inserted(3, "d").data == b"a\r\nb\nc\r\nd\r\n"


def test_matches_are_counted_with_overlap_and_named_by_line() -> None:
    with pytest.raises(ManyMatches) as raised:
        text_of(b"x\ny\nx x\n").replaced("x", "z")
    assert raised.value.line_numbers == [1, 3]
    with pytest.raises(ManyMatches):
        text_of(b"ababa\n").replaced("aba", "c")
    with pytest.raises(NoMatch):
        text_of(b"\tcc main.c\n").replaced("        cc main.c", "x")


def test_countless_matches_are_refused_at_once() -> None:
    file = text_of(b"x y x\n" * 1_000_000)
    with pytest.raises(ManyMatches) as raised:
        file.replaced("x", "z")
    assert raised.value.line_numbers == list(range(1, 5001))
    with pytest.raises(ManyMatches):
        file.replaced("", "z")


def test_insertion_outside_the_file_names_the_range() -> None:
    with pytest.raises(LineOutOfRange) as raised:
        text_of(b"a\nb\n").inserted(3, "x")
    assert (raised.value.first, raised.value.last) == (0, 2)


def test_empty_file() -> None:
    file = text_of(b"")
    assert file.lines == []
    assert file.inserted(0, "first").data == b"first\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF" + bytes(range(256)),
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n\x9c\xff\x10\x80\x81\nendobj\n",
        b"\x1f\x8b\x08\x01\xe9\x9c",
        bytes(range(1, 256)) * 4,
        b"\xff\xfe\x00",
        b"\xef\xbb\xbfa\0b",
    ],
)
def test_binary_content_is_refused_with_its_size(data: bytes) -> None:
    with pytest.raises(BinaryFile) as raised:
        text_of(data)
    assert raised.value.size == len(data)


def test_control_characters_in_utf8_are_text() -> None:
    assert text_of(b"a\x01b\x01c\n\x1b[31mred\x1b[0m\n").lines[0] == "a\x01b\x01c"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "# 設定ファイル\nkey = 値\n"),
        ("cp932", "日本語のテキストです。\r\nfoo = 1\r\nあいう\r\n"),
        ("cp932", "/* コメント */\nint main(void) {} // 終わり\n"),
        ("euc_jp", "# 設定ファイル\nkey = 値\n"),
        ("gb18030", "# 配置文件\nname = 张三\n"),
        ("gb18030", "你好，世界\n"),
        ("cp949", "# 설정 파일\n이름 = 홍길동\n"),
        ("cp1252", "Größe: 5 m², 25°C, 30°C\n"),
        ("cp1252", "‚abc‘ „Öl“ Ærø ƒ(x)\n"),
        ("cp1252", "x = “q” €\n"),
        ("cp1252", "£5 — 10™\n"),
        ("koi8_r", "имя = Иван\nключ = значение\n"),
    ],
)
def test_few_words_of_a_legacy_charset_are_read_and_edited(encoding: str, text: str) -> None:
    file = FileText.from_bytes("few.txt", text.encode(encoding))
    assert file.text == text.replace("\r\n", "\n")
    word = text.split()[-1]
    assert file.replaced(word, word * 2).data == text.replace(word, word * 2).encode(encoding)
