"""Editors and a pager, driven by keys to a result that is looked at on disk: vim, nano, less.

The modes that an editor sets (application cursor keys, mouse, bracketed paste) change no key's meaning.
"""

import pytest

from fullscreen import lines_of, needs, played

pytestmark = pytest.mark.one_server

ALPHABET = "printf 'alpha\\nbeta\\ngamma\\n' > f"


@needs("vim")
# promise: screen-5
async def test_vim_searches_edits_and_writes(workspace):
    async with played(workspace, "vim f", "^gamma", "row 1 column 1", before=ALPHABET) as vim:
        await vim.press("/gam<Enter>", until="^gamma", cursor="row 3 column 1")
        await vim.press("cwdelta<Esc>", until="^delta$", cursor="row 3 column 5")
        await vim.type("ggOomega", until="^omega$", cursor="row 1 column 6")
        await vim.press("<Esc>", until="^omega$", cursor="row 1 column 5")
        await vim.leave(":wq<Enter>", paint="^~$")
    assert lines_of(workspace.project / "f") == ["omega", "alpha", "beta", "delta"]


@needs("vim")
# promise: screen-4
async def test_vims_arrows_and_function_keys_are_keys_while_it_takes_the_mouse(workspace):
    settings = "-c 'set mouse=a ttymouse=sgr' -c 'inoremap <F5> five' -c 'inoremap <S-Right> shifted'"
    async with played(workspace, f"vim {settings} f", "^gamma", "row 1 column 1", before=ALPHABET) as vim:
        journal = workspace.journal(vim.session.id)
        # Application cursor keys and the mouse, as the terminal was asked for them.
        assert (b"\x1b[?1h" in journal, b"\x1b[?1006" in journal) == (True, True)
        await vim.press("i", "Down", "Down", "End", until="^gamma$", cursor="row 3 column 6")
        await vim.press("F5", "S-Right", "Home", "C-v", "Tab", until="^ +gammafiveshifted$", cursor="row 3 column 9")
        await vim.press("<Up><End><lt>F6>", until="^beta<F6>$", cursor="row 2 column 9")
        # An Escape of its own: with a key behind it that would be another key.
        await vim.press("Escape", until="^beta<F6>$", cursor="row 2 column 8")
        await vim.leave(":x<Enter>", paint="^~$")
    assert lines_of(workspace.project / "f") == ["alpha", "beta<F6>", "\tgammafiveshifted"]


@needs("vim")
# promise: screen-4
async def test_a_click_goes_where_vim_has_its_mouse(workspace):
    async with played(workspace, "vim -c 'set mouse=a ttymouse=sgr' f", "^gamma", "row 1 column 1", before=ALPHABET) as vim:
        await vim.press("Click:3,4", until="^gamma", cursor="row 3 column 4")
        await vim.press("x", until="^gama$", cursor="row 3 column 4")
        await vim.leave(":x<Enter>", paint="^~$")
    assert lines_of(workspace.project / "f") == ["alpha", "beta", "gama"]


@needs("vim")
# promise: screen-4
async def test_pasted_lines_reach_an_editor_as_they_are(workspace):
    async with played(workspace, "vim -c 'set autoindent' f", "^~$", "row 1 column 1") as vim:
        assert b"\x1b[?2004h" in workspace.journal(vim.session.id)
        await vim.press("i", until="INSERT", cursor="row 1 column 1")
        await vim.type("if a:\n  b\n  c\nd", until="^d$", paste=True)
        await vim.press("Escape", until="^d$", cursor="row 4 column 1")
        await vim.leave(":wq<Enter>", paint="^~$")
    assert lines_of(workspace.project / "f") == ["if a:", "  b", "  c", "d"]


@needs("nano")
# promise: screen-5
async def test_nano_types_writes_and_leaves(workspace):
    async with played(workspace, "nano -I g", "New File", "row 2 column 1") as nano:
        await nano.type("first\rsecond <line>", until="^second <line>$", cursor="row 3 column 14")
        await nano.press("^O", until="^File Name to Write: g", cursor="row 10 column 22")
        await nano.press("Enter", until="Wrote 2 lines")
        await nano.leave("^X", paint="GNU nano")
    assert lines_of(workspace.project / "g") == ["first", "second <line>"]


@needs("less")
# promise: screen-5
async def test_less_searches_goes_to_the_end_and_back_by_arrows(workspace):
    async with played(workspace, "less n", "^11$", before="seq 1 300 > n") as less:
        assert b"\x1b[?1h" in workspace.journal(less.session.id)
        await less.press("/250<Enter>", until="\\A250$(.|\\n)*^260$")
        end = await less.press("G", until="^300\\n\\(END\\)$", cursor="row 12 column 6")
        assert end.output.splitlines() == [*map(str, range(290, 301)), "(END)"]
        await less.press("Up", "Up", until="\\A288$(.|\\n)*^298$")
        await less.press("Home", until="\\A1$(.|\\n)*^11$")
        await less.leave("q", paint="^11$")
