"""Names of players: those that are the same, those that may be, and what is read of a player."""

import itertools
import types

import chess
import pytest
from absl import flags

from precomp_games.chess import (
    ChessGame,
    GameReport,
    PreparationSettings,
    games_policy,
    read_games,
    write_pgn,
)
from precomp_games.chess.data.move_counts import GameSelection
from precomp_games.chess.data.names import (
    alike,
    fitting_names,
    name_words,
    resolve_names,
    same_initials,
    tag_text,
)
from precomp_games.chess.data.pgn_files import pgn_names
from precomp_games.chess.model.played import pgn_moves, pgn_results, reply_games
from precomp_games.commands import opponent
from precomp_games.commands._chess import print_games
from tests.oracles.pgn import game, read
from tools.samples import small_book

SAME = [
    "José, A|Jose\u0301, A|JOSÉ,A.|josé_a|(José) A",
    "Nguyễn, V|Nguye\u0302\u0303n, V",
    "Королёв, Й|Короле\u0308в, И\u0306",
    "O'Kelly, A|O’Kelly, A|O‘Kelly,A.|OKelly, A|O`Kelly, A|Oʼkelly, A|O´Kelly, A",
    "Vachier-Lagrave, M|Vachier‐Lagrave, M|VACHIER–LAGRAVE,M",
    "jose_müller|JOSE MÜLLER|jose mu\u0308ller",
    'Fischer, Robert "Bobby"|Fischer, Robert “Bobby”',
    "Weiß, A|WEISS, A",
]
"""The same names, whatever is sure."""

MAY_BE = [
    "Blübaum, Matthias|Bluebaum, Matthias|Blubaum, M|bluebaum matthias|Matthias Blübaum|GM Blübaum, M.",
    "Sørensen, Søren|Soerensen, S|Sorensen, Soren",
    "Åkesson, Ralf|Aakesson, R|Akesson, Ralf",
    "Ægisson, Æ|Aegisson, A|Agisson, A",
    "Weiß, Übung|Weiss, U",
    "Đurić, S|Djuric, Stefan|Duric, S",
    "Þórsson, Ð|Thorsson, D",
    "Yılmaz, İ|Yilmaz, I",
    "José_Müller|jose_muller|José Müller|Jose Mueller|JOSE-MULLER|Müller, José|josemuller",
    "Карпов, Анатолий|Karpov, Anatoly|Karpow, Anatolij|Karpov,A|Анатолий Карпов",
    "Корчной, В.|Korchnoi, Viktor|Korchnoj, V",
    "Спасский, Борис|Spassky, Boris|Boris Spassky",
    "Таль, Михаил|Tal, Michail",
    "Грищук, Александр|Grischuk, Alexander|Grishchuk, A",
    "丁立人|Ding, Liren|Ding Liren|Liren Ding|Ding,L",
    "侯逸凡|Hou, Yifan|Hou Yi Fan|Hou, Yi-Fan",
    "O'Kelly, Alberic|O Kelly, A|O-Kelly, A",
    "Vachier-Lagrave, Maxime|Vachier Lagrave, M|Maxime Vachier-Lagrave|VachierLagrave, M",
    "Fischer, Robert James|Fischer,RJ|Fischer, R.J.|Robert James Fischer|Robert J. Fischer|Fischer",
    "Dr. Tarrasch|Tarrasch, Siegbert|Tarrasch, Siegbert Dr|Prof Tarrasch, S",
    "Wang, Yue|WangYue|Wang Yue|Yue Wang",
]
"""Names that may be one person's: all of each line."""

OTHERS = [
    "Karpov, Anatoly|Karpova, Anatoly",
    "Karpov, A.|Karpova",
    "Karpov, Anatoly|Karpov, Sergey",
    "Carlsen, Magnus|Magnus",
    "Carlsen, Magnus|Magnus, Carl",
    "Smith, John|John, Smithers",
    "A. Karpov|A. Kramnik",
    "Müller, K|Möller, K",
    "Карпов|Каспаров",
    "?|Karpov",
    "GM|GM Karpov",
    "|Karpov",
]
"""Names of two persons."""


@pytest.mark.parametrize("line", SAME)
def test_the_same_names(line):
    assert len({name_words(name) for name in line.split("|")}) == 1


@pytest.mark.parametrize("line", MAY_BE)
def test_names_that_may_be_one_persons(line):
    """Each finds all others, also as one who is left out, and alone fits itself alone."""
    names = line.split("|")
    counts = dict.fromkeys(names, 1)
    for one, other in itertools.permutations(names, 2):
        assert alike(one, other) and same_initials(one, other), (one, other)
    for name in names:
        (alone,), (every,) = fitting_names(name, counts), fitting_names(name, counts, all_alike=True)
        assert [name_words(each) for each in alone] == [name_words(name)]
        assert set(map(name_words, every)) == set(map(name_words, names))
        others = {each: 1 for each in names if name_words(each) != name_words(name)}
        for fitting in fitting_names(name, others):
            assert set(map(name_words, fitting)) == set(map(name_words, others))


@pytest.mark.parametrize("line", OTHERS)
def test_names_of_two_persons(line):
    one, other = line.split("|")
    assert name_words(one) != name_words(other)
    assert not alike(one, other) and not alike(other, one)
    assert fitting_names(one, {other: 1}) == [[]]


def test_long_and_odd_names_take_no_time():
    long = " ".join("abcdefgh" * 25)
    for name in (long, "a, " * 60, "é" * 200, "\u0301" * 200, "GM " * 60, "'" * 200, ",", "GM, IM"):
        assert not alike(name, "Karpov, Anatoly")
        assert name_words(name) == () or fitting_names(name, {name: 1}) == [[name]]


# -- files -------------------------------------------------------------------------------------------------


def test_a_player_is_one_of_a_file_and_who_is_left_out_all_that_may_be(tmp_path):
    games = [
        game("1. e4", "Karpov, A.", "Other"),
        game("1. d4", "Other", "Karpov, Anatoly"),
        game("1. c4", "Karpova, Anna", "Polgar, Judit"),
        game("1. b3", "KARPOV,Anatoly", "Polgar, Sofia"),
    ]
    counts = {"karpov anatoly": 2, "Karpov, A.": 1, "Karpov, A.; Karpov, Anatoly": 3, "Karpova": 1}
    assert {player: len(read(tmp_path, *games, player=player)[0]) for player in counts} == counts
    # Who is left out may be spelled otherwise than in the file.
    for without, count in (("Karpov", 1), ("Karpov Anatoli", 1), ("Karpov, B.; Nobody", 4)):
        assert len(read(tmp_path, *games, without=without)[0]) == count
    _, report = read(tmp_path, *games, player="Karpov, A.")
    assert report.names == ("Karpov, A.",) and str(report).startswith("1 game; ")
    assert report.alike == {"Karpov, Anatoly": 1, "KARPOV,Anatoly": 1}
    for player, words in (
        ("Karpof", r"expected moves of 'Karpof' .*games of 'Karpov, A\.'"),
        (" ; ", "games of"),
    ):
        with pytest.raises(ValueError, match=words):
            read(tmp_path, *games, player=player)
    with pytest.raises(ValueError, match=r"fits 2 names in .*: A, B; A, C\[2J \("):  # no terminal is cleared
        read(tmp_path, game("1. e4", "A, B"), game("1. d4", "A, C\x1b[2J"), player="A")


_BLUEBAUM = {"Blübaum, Matthias": 8, "Bluebaum, Matthias": 15, "Blubaum, M": 7}


@pytest.fixture(scope="module")
def bluebaum(tmp_path_factory):
    """Return thirty games of a player whose name is spelled in three ways."""
    names = [name for name, count in _BLUEBAUM.items() for _ in range(count)]
    sides = [(name, f"Other, G{k}") if k % 2 else (f"Other, G{k}", name) for k, name in enumerate(names)]
    path = tmp_path_factory.mktemp("games") / "names.pgn"
    path.write_text("".join(game("1. e4", *both, Result="1-0") for both in sides))
    return path


_FITS = r"expected one player, got .* which fits 3 names .*Bluebaum, Matthias.*Blübaum, Matthias.*Blubaum, M"


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("Blübaum, Matthias", "Blübaum, Matthias"),
        ("Blu\u0308baum, Matthias", "Blübaum, Matthias"),
        ("bluebaum matthias", "Bluebaum, Matthias"),
        ("BLUBAUM,M.", "Blubaum, M"),
        ("Blubaum M; Blübaum Matthias", "Blübaum, Matthias; Blubaum, M"),
        ("Blubaum M; Blübaum Matthias; Bluebaum Matthias", "; ".join(_BLUEBAUM)),
        *((asked, None) for asked in ("Bluebaum", "blübaum m", "Matthias Blübaum", "GM Blubaum,Matthias")),
    ],
)
def test_what_fits_several_is_asked_and_what_is_not_taken_is_reported(asked, taken, bluebaum):
    """Nobody's games are taken together or left out without a word."""
    if taken is None:
        with pytest.raises(ValueError, match=_FITS):
            read_games(bluebaum, asked)
        return
    report, names = GameReport(), taken.split("; ")
    assert len(list(read_games(bluebaum, asked, report=report))) == sum(_BLUEBAUM[name] for name in names)
    assert set(report.names) == set(names)
    assert report.alike == {name: count for name, count in _BLUEBAUM.items() if name not in names}
    for name, count in report.alike.items():
        assert f"{name!r} has {count} games and may be the same" in str(report)
    assert ("taken together: " in str(report)) == (len(names) > 1)


def test_all_who_ask_for_one_tell_of_others(bluebaum, capsys):
    """All readers have it in their report, and commands print that of a person who is the opponent."""
    asked, *others = _BLUEBAUM
    reports = [GameReport() for _ in range(3)]
    pgn_moves(bluebaum, asked, report=reports[0])
    pgn_results(bluebaum, asked, report=reports[1])
    reply_games(small_book(), GameSelection(bluebaum, asked), report=reports[2])
    model = games_policy(ChessGame({}), bluebaum, player=asked)
    assert all(list(report.alike) == others for report in (*reports, model.report))
    for sigma in ((None, model), (None, None)):
        made = types.SimpleNamespace(sigma=sigma)
        print_games(PreparationSettings(player=0), types.SimpleNamespace(policies=lambda _, made=made: made))
    assert capsys.readouterr().out == f"Opponent's games    {model.report}\n"


@pytest.mark.parametrize(
    "asked", ["Blubaum, M", "bluebaum", "Matthias_Blübaum", "Blubaum; Bluebaum, Matthias"]
)
def test_all_spellings_are_taken_where_that_is_asked_and_left_out(asked, bluebaum):
    given = flags.FlagValues()
    opponent.define(given)
    given(["opponent", f"--games={bluebaum}", f"--player={asked}", "--all_spellings"])
    _, player, _ = opponent._named(given)
    report = GameReport()
    assert len(list(read_games(bluebaum, player, report=report))) == 30 and not report.alike
    assert str(report).endswith("taken together: 'Bluebaum, Matthias', 'Blübaum, Matthias', 'Blubaum, M'")
    report = GameReport()
    assert not list(read_games(bluebaum, without=asked, report=report))
    assert report.left_out == {"games of the player to be left out": 30}


def test_a_name_that_nobody_has(bluebaum):
    with pytest.raises(ValueError, match="got none: the file has games of 'Bl"):
        read_games(bluebaum, "Blaubum, Matthias")
    for asked in ("", " ; ", ".", "Nobody;"):
        with pytest.raises(ValueError, match="got none"):
            resolve_names(asked, {".": 3, "A": 1}, "x.pgn")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"Fischer, Robert \"Bobby\"", 'Fischer, Robert "Bobby"'),
        (r"back\\slash", r"back\slash"),
        (r"both \\\" of them", r"both \" of them"),
        (r"C:\new", r"C:\new"),
        (r"ends in \\", "ends in \\"),
        (r"\"", '"'),
        ('bare "quotes" here', 'bare "quotes" here'),
    ],
)
def test_escapes_in_tags_are_read_and_written(written, meant, tmp_path):
    assert tag_text(written) == meant
    path, others = tmp_path / "games.pgn", game("1. d4", "Other", "Another")
    (record, _), _ = read(tmp_path, game("1. e4", written, "Other"), others)
    assert record.white == meant and pgn_names(path) == {"Other": 2, meant: 1, "Another": 1}
    if name_words(meant):
        (record,), report = read(tmp_path, game("1. e4", written, "Other"), others, player=meant)
        assert report.names == (meant,) and record.own == (chess.WHITE,)
    write_pgn(small_book(), path, {"White": meant, "Black": "Other"})
    assert pgn_names(path) == {meant: 1, "Other": 1} and next(read_games(path)).white == meant
