"""The links of the documentation: a made site in which each kind of link is there once, and once broken."""

from pathlib import Path

import pytest

from tools import links

SOUND = """<!doctype html><html><head><link rel="stylesheet" href="_static/own%20style.css?v=1"></head>
<body id="top"><a name="old"></a><h1 id="größe">Here</h1>
<a href="">itself</a> <a href="#">its top</a> <a href="#top">top</a> <a href="#old">old</a>
<a href="#gr%C3%B6%C3%9Fe">size</a> <a href="below/page.html#there">there</a> <a href="below/">folder</a>
<img src="_static/picture.svg" srcset="_static/picture.svg 2x">
<a href="https://example.org/nowhere#at-all">out</a> <a href="//example.org">out</a>
<a href="mailto:a@example.org">mail</a>
</body></html>"""
LAST = SOUND.count("\n") + 1


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "own style.css").write_text("")
    (tmp_path / "_static" / "picture.svg").write_text("<svg/>")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "index.html").write_text("<p>")
    (tmp_path / "below" / "page.html").write_text('<p id="there"><a href="../index.html#top">back</a></p>')
    (tmp_path / "index.html").write_text(SOUND, encoding="utf-8")
    return tmp_path


def test_a_sound_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert links.main([str(site)]) == 0
    assert capsys.readouterr().out == "3 pages, 11 links within, 0 broken; 3 to other sites, not followed\n"
    assert links.main([str(site), "--list"]) == 0
    assert "     1 https://example.org/nowhere#at-all\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        ('<a href="nowhere.html">', "'nowhere.html': there is no such file"),
        ('<img src="_static/none.png">', "'_static/none.png': there is no such file"),
        ('<img srcset="_static/picture.svg, _static/none.png 2x">', "'_static/none.png': there is no such file"),
        ('<script src="_static/none.js"></script>', "'_static/none.js': there is no such file"),
        ('<a href="_static/">', "'_static/': there is no such file"),
        ('<a href="#nowhere">', "'#nowhere': index.html has no #nowhere"),
        ('<a href="#Top">', "'#Top': index.html has no #Top"),
        ('<a href="below/page.html#here">', "'below/page.html#here': page.html has no #here"),
        ('<a href="../">', "'../': leads out of the documentation"),
        ('<a href="/index.html">', "'/index.html': begins at the root of a site, and not at this page"),
    ],
)
def test_a_broken_link_is_named(site: Path, capsys: pytest.CaptureFixture[str], tag: str, why: str) -> None:
    (site / "index.html").write_text(SOUND.replace("</body>", f"{tag}</body>"), encoding="utf-8")
    assert links.main([str(site)]) == 1
    line, total = capsys.readouterr().out.splitlines()
    assert line == f"index.html:{LAST}: {why}"
    assert ", 1 broken; " in total


def test_a_folder_without_pages_is_no_proof(tmp_path: Path) -> None:
    assert links.main([str(tmp_path)]) == 2
