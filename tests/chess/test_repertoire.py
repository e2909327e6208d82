"""A person's own book: the lines read from its files, and what it is worth as a preparation."""

import collections
import dataclasses
import random

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precomp_games.chess import (
    EnginePool,
    Engines,
    EvaluationStore,
    PreparationSettings,
    StoredEngine,
    judge_repertoire,
    read_repertoire,
    write_pgn,
    write_polyglot,
)
from precomp_games.chess.game import action_of, is_legal
from precomp_games.chess.plan.repertoire_book import repertoire_preparation, with_likely_replies
from precomp_games.chess.study.drill import book_cards
from tests.oracles.chess_books import book_of
from tests.oracles.engines import HashEngine
from tests.oracles.pgn import after, mutated, polyglot_entry
from tests.oracles.pgn import game as pgn
from tests.properties import examples

_ELSEWHERE = "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"


def game(moves, fen=""):
    return pgn(moves, **({"FEN": fen, "SetUp": "1"} if fen else {}))


def read(folder, *texts, side=chess.WHITE, **options):
    path = folder / "mine.pgn"
    path.write_text("".join(texts))
    return read_repertoire(path, side, **options)


def known(book):
    """Return the moves of a book in UCI notation, by EPD; each is legal there."""
    for epd, position in book.positions.items():
        board = chess.Board(epd + " 0 1")
        assert board.turn == book.side and all(is_legal(board, move) for move in position.moves)
    return {epd: [move.uci() for move in position.moves] for epd, position in book.positions.items()}


def of(**lines):
    """Return moves by EPD, of lines in SAN with "_" for blanks."""
    return {after(line.replace("_", " ").strip()): moves.split() for line, moves in lines.items()}


def test_variations_marks_and_transpositions(tmp_path):
    variations = "1. e4 {a} e5 $14 (1... c5! 2. Nf3 (2. c3 d5) 2... d6 3. d4) 2. Nf3 Nc6 3. Bb5 (3. Bc4? Nf6)"
    book = read(
        tmp_path,
        game(variations),
        game("1. Nf3 e5? 2. e4 Nc6 3. Bc4 ; the same position\n Bc5"),
        game("1. d4", fen=_ELSEWHERE),
        game("1. e4 e5 2. Nf3 (2. Nf3 Nc6) Nc6 (2... f5) 3. Bb5 a6"),  # the first two lines add nothing
    )
    assert known(book) == of(
        _="e2e4 g1f3",
        e4_c5="g1f3 c2c3",
        e4_c5_Nf3_d6="d2d4",
        e4_e5="g1f3",
        Nf3_e5="e2e4",
        e4_e5_Nf3_Nc6="f1b5 f1c4",
    )
    report = book.report
    assert (report.games, report.lines, report.mistakes, report.contradictions) == (3, 8, 1, 3)
    assert (report.redundant, report.transpositions) == (2, 1)
    assert report.left_out == {"another start position": 1} and not report.cut
    assert book.positions[after("e4 e5 Nf3 Nc6")].source == "mine.pgn, game 1"
    assert book.playable == frozenset(known(book)) - {after("Nf3 e5")}  # 1. Nf3 is a second choice
    assert len(book) == 6 and book.longest == 5 and book.actions_at("nowhere") == ()


def test_black_and_several_files(tmp_path):
    files = {"one.pgn": game("1. e4 e5 (1... c5) 2. Nf3 Nc6"), "two.pgn": game("1. e4 c6") + game("1. d4 d5")}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    book = read_repertoire([tmp_path / name for name in files], chess.BLACK)
    assert known(book) == of(e4="e7e5 c7c5 c7c6", e4_e5_Nf3="b8c6", d4="d7d5")
    assert book.positions[after("d4")].source == "two.pgn, game 2" and book.player == 1


def test_another_start_position(tmp_path):
    book = read(tmp_path, game("1. e4 e5 2. Nf3"), game("1. e4 Kd4", fen=_ELSEWHERE), fen=_ELSEWHERE)
    assert known(book) == {after("", _ELSEWHERE): ["e2e4"]} and book.start.fen() == _ELSEWHERE
    assert book.report.left_out == {"another start position": 1}
    begun = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -"
    chapter = pgn("2. Nf3 Nc6 3. Bb5", Variant="From Position", FEN=f"{begun} 0 2", SetUp="1")
    usual = pgn("1. e4", Variant="From Position", FEN="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -")
    for fen in (f"{begun} 0 2", begun, f"{begun} 7 30"):
        book = read(tmp_path, chapter, usual, fen=fen)
        assert known(book) == of(e4_e5="g1f3", e4_e5_Nf3_Nc6="f1b5")
    assert known(read(tmp_path, chapter, usual)) == of(_="e2e4")
    with pytest.raises(ValueError, match=rf"got none .*; fen='{begun} 0 2' reads what begins there\)"):
        read(tmp_path, chapter)


@pytest.mark.parametrize(
    ("moves", "lines", "message"),
    [
        ("1. e4 e5 2. Ke4 Nc6", [""], "1 cut: a move that cannot be read"),
        ("1. e4 e5 (1... Ke4 2. d4 d5 3. c4) 2. Nf3", ["", "e4 e5"], "1 left out: a line without a move"),
        # What python-chess would read from the wrong position: after a variation that broke, and in one.
        ("1. e4 (1. d4 Ke4) 1... e5 2. Nf3", ["", "e4 e5"], "1 cut: a move that cannot be read"),
        ("1. e4 e5 2. Ke4 (2. Nf3 Nc6 3. Bb5) Nc6", ["", "e4 e5", "e4 e5 Nf3 Nc6"], "1 cut"),
        ("1. e4 e5 2. Ke4 Nc6 (2... d6 3. d4)", [""], "1 cut: a variation of what cannot be read"),
        ("1. e4 -- 2. d4 d5 3. c4", [""], "1 cut: a null move"),
        ("1. e4 e5 2. Nf3 (2. f4", ["", "e4 e5"], "4 lines"),
        ("(1. d4) 1. e4 ))) e5 2. Nf3", [""], "1 cut"),
        (f"1. e4 e5 2. Nf3 ${'9' * 5000} Nc6 3. Bb5", ["", "e4 e5"], "1 cut: a game that cannot be read"),
    ],
)
def test_broken_lines(tmp_path, moves, lines, message):
    """Each between two good games, which are read all the same."""
    book = read(tmp_path, game("1. c4 c5 2. Nc3"), game(moves), game("1. d4 d5 2. c4"))
    assert set(known(book)) == {after("c4 c5"), after("d4 d5"), *map(after, lines)}
    assert message in str(book.report) and "\n" not in str(book.report)


def test_deep_and_long_ones_are_bounded(tmp_path):
    book = read(tmp_path, game("1. e4 " + "(1. d4 " * 5000), game("Nf3 Nf6 Ng1 Ng8 " * 200))
    assert book.report.lines == 101 and book.report.cut["variations within too many others"] == 1
    assert book.report.cut["a line that is too long"] == 1 and len(book.positions) == 2
    few = read(tmp_path, game("1. e4 e5 2. Nf3"), game("1. d4"), max_games=1, max_plies=2)
    assert known(few) == of(_="e2e4")
    assert few.report.left_out == {"games beyond the number that is read": 1}
    with pytest.raises(OSError, match="none"):
        read_repertoire(tmp_path / "none.pgn", chess.WHITE)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # Moves without tags are a book, if they are more than words of prose.
        ("1. e4 e5 2. Nf3\n\n1. d4 d5 (1... Nf6 2. c4) 2. Ke4\n", ["", "e4 e5", "d4 Nf6"]),
        (game("Of all moves e4 is best. Then e5 and Nf3.\n\n1. e4 e5 2. Nf3"), ["", "e4 e5"]),
        # Lines that are cut short are no prose.
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 *", ["", "e4 e5"]),
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5 (3. Bc4 Bc5) (3. d4) a6 (3... Nf6) *", ["", "e4 e5"]),
        ("1. e4 -- 2. d4 d5", [""]),
        ("1. e4 " + "(1. d4 " * 101 + ")" * 101 + " *", [""]),
    ],
)
def test_what_is_no_prose(tmp_path, text, lines):
    assert set(known(read(tmp_path, text, max_plies=4))) == set(map(after, lines))


def test_what_the_library_writes_is_read_again(tmp_path):
    lines = of(_="e2e4", e4_e5="g1f3", e4_c5="g1f3", e4_e5_Nf3_Nc6="f1b5")
    written = book_of("| e2e4", "e2e4 e7e5 | g1f3", "e2e4 c7c5 | g1f3", "e2e4 e7e5 g1f3 b8c6 | f1b5")
    files = [tmp_path / "book.pgn", tmp_path / "book.bin"]
    write_pgn(written, files[0])
    write_polyglot(written, files[1])
    for source in (files[0], files[1], files):
        book = read_repertoire(source, chess.WHITE)
        assert known(book) == lines and not book.report.contradictions and not book.report.left_out
    assert book.report.entries == 4
    with pytest.raises(ValueError, match="4 left out: entries of the other side"):
        read_repertoire(files[1], chess.BLACK)


def test_what_is_wrong_with_a_polyglot_file_is_counted(tmp_path):
    """With an entry twice, one of weight 0, one of the other side, and half of one."""
    path, later = tmp_path / "book.bin", chess.Board(f"{after('e4')} 0 1")
    own, unwanted = (
        polyglot_entry(chess.Board(), move, weight) for move, weight in (("e2e4", 3), ("a2a3", 0))
    )
    path.write_bytes(own + own + unwanted + polyglot_entry(later, "g8f6", 3) + b"half")
    book = read_repertoire(path, chess.WHITE)
    assert known(book) == of(_="e2e4") and book.report.entries == 1
    unreached = "entries of the other side, or that play does not reach"
    assert book.report.left_out == {"an entry that breaks off": 1, unreached: 1}
    for message in ("1 entries that repeat another", "1 moves of weight 0"):
        assert message in str(book.report) and "\n" not in str(book.report)
    path.write_bytes(unwanted)
    with pytest.raises(ValueError, match=r"expected moves of white .* got none .*1 moves of weight 0"):
        read_repertoire(path, chess.WHITE)


# -- a large book ------------------------------------------------------------------------------------------


class _Writer:
    """Writes a book of many lines at random, and notes what stands in it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.moves, self.count = {}, collections.Counter()

    def text(self, board, plies):
        """Return the rest of a line from here, with the variations that leave it."""
        rng, words = self.rng, []
        board = board.copy(stack=False)
        while plies and not board.is_game_over():
            own, legal = board.turn == chess.WHITE, sorted(board.legal_moves, key=chess.Move.uci)
            move = rng.choice(legal)
            if own and rng.random() < 0.97:  # the same wherever a position comes up
                move = legal[sum(board.epd().encode()) % len(legal)]
            words.append(self._move(board, move))
            if not own and rng.random() < 0.4:
                other = rng.choice(legal)
                then = board.copy(stack=False)
                then.push(other)
                words.append(f"({self._move(board, other)} {self.text(then, plies - 1)})")
            if rng.random() < 0.03:
                words.append("(Ka5 Kb6 (d4) Kc7)" if own else "(Ka4)")
                self.count.update(broken=1, within=own)
            if own and len(legal) > 1 and rng.random() < 0.02:
                words.append(f"({board.san(next(m for m in legal if m != move))} ?)")
                self.count.update(mistakes=1, lines=1)
            board.push(move)
            plies -= 1
        self.count["lines"] += 1
        if not board.is_game_over() and rng.random() < 0.05:
            own = board.turn == chess.WHITE
            words.append("Ka5 e4 (e5) d4" if own else "Ka4 d5")
            self.count.update(cut=1, within=own)
        return " ".join(words)

    def _move(self, board, move):
        if board.turn == chess.WHITE and move.uci() not in self.moves.setdefault(board.epd(), []):
            self.moves[board.epd()].append(move.uci())
        marks = ["", "", "", "", " {a comment (with e4)}", " $14", "!", " !?"]
        return board.san(move) + self.rng.choice(marks)


@examples(16)
@given(st.integers(0, 2**32))
def test_every_line_is_read_or_refused_and_reported(tmp_path_factory, seed):
    """Positions are those that were written, in order."""
    writer = _Writer(seed)
    texts = [game("1. e4 Kd4", fen=_ELSEWHERE)]
    while writer.count["lines"] < 150:
        texts.append(game(writer.text(chess.Board(), 14)))
    book = read(tmp_path_factory.getbasetemp(), *texts)
    assert known(book) == writer.moves
    report, count = book.report, writer.count
    assert report.lines == count["lines"] and report.mistakes == count["mistakes"]
    assert report.left_out["a line without a move that can be read"] == count["broken"] + count["within"]
    assert report.cut["a variation of what cannot be read"] == count["within"]
    assert report.cut["a move that cannot be read"] == count["cut"] + count["broken"]
    assert report.left_out["another start position"] == 1 and report.games == len(texts) - 1
    assert report.contradictions == sum(len(moves) > 1 for moves in writer.moves.values())


@examples(300)
@given(st.integers(0, 2**32), st.sampled_from(["bin", "pgn", "pgn"]))
def test_a_damaged_file_is_read_as_legal_moves_or_refused_in_one_line(tmp_path_factory, seed, suffix):
    path = tmp_path_factory.getbasetemp() / f"mine.{suffix}"
    if suffix == "bin":
        write_polyglot(book_of("| e2e4", "e2e4 e7e5 | g1f3"), path)
    else:
        path.write_text("".join(game(_Writer(5).text(chess.Board(), 8)) for _ in range(3)))
    path.write_bytes(mutated(random.Random(seed), path.read_bytes()))
    try:
        book = read_repertoire(path, chess.WHITE)
    except ValueError as error:
        assert "read_repertoire()" in str(error) or "PolyglotCounts.read()" in str(error)
        assert "\n" not in str(error)
    else:
        assert known(book) and "\n" not in str(book.report)


# -- as a preparation -------------------------------------------------------------------------------------

# Two orders of moves lead to one position, and a second choice (2. d4) has a line behind it.
_BOOK = (
    "1. e4 e5 (1... c5 2. Nf3 e6 (2... d6 3. d4) 3. d4) (1... e6 2. Nf3 c5 3. d4) "
    "2. Nf3 (2. d4 exd4 3. Qxd4) *"
)
_SETTINGS = PreparationSettings(penalty=1e-7, menu=2, max_plies=8, top_k=2, menu_window_cp=500.0)
_LIKELY = (("e5", 0.4), ("c5", 0.3), ("e6", 0.2), ("d5", 0.1), ("d6", 0.1), ("cxd4", 0.2))


def _replies(state, player=None):
    """Return a few likely replies, by name, and one that is not."""
    weights = {a: dict(_LIKELY).get(state.action_to_string(a), 0.0) for a in state.legal_actions()}
    weights[state.legal_actions()[0]] += 0.005
    return {a: weight / sum(weights.values()) for a, weight in weights.items() if weight}


class _Pool(EnginePool):
    """Scores by hashes, in place of engines."""

    def __init__(self):
        self.engine_id = HashEngine.engine_id

    def search(self, epds, limit, multipv, on_result=None, samples=0):
        for epd, result in zip(epds, HashEngine().search(epds, limit, multipv), strict=True):
            on_result(epd, result)


@pytest.fixture
def engines():
    with EvaluationStore(":memory:") as store:
        engine = StoredEngine(store, _Pool())
        yield Engines(engine, engine)


@pytest.fixture
def policies(engines):
    policies = engines.policies(_SETTINGS)
    return dataclasses.replace(policies, sigma=(policies.sigma[0], _replies))


@pytest.fixture
def book(tmp_path):
    return read(tmp_path, _BOOK)


def _games(book, policies, forgotten=None):
    """Return all ways in which games leave the book: (line, reach, what it is worth, whether it is over)."""

    def walk(state, reach):
        if state.is_terminal():
            yield state.history(), reach, state.returns()[0], True
        elif state.current_player() == 0:
            known = book.positions.get(state.epd) if state.epd != forgotten else None
            if known is None:
                yield state.history(), reach, float(policies.leaf_value.evaluate_batch([state])[0]), False
            else:
                yield from walk(state.child(action_of(known.moves[0])), reach)
        else:
            for action, p in _replies(state).items():
                yield from walk(state.child(action), reach * p)

    return list(walk(_SETTINGS.game().new_initial_state(), 1.0))


def test_a_repertoire_is_worth_what_all_games_with_it_are(book, engines, policies):
    made = repertoire_preparation(book, _SETTINGS, engines, policies=policies)
    games = _games(book, policies)
    assert made.utility == pytest.approx(sum(reach * value for _, reach, value, _ in games))
    # Where games leave it, and how many are still in it at each move.
    left = {tuple(map(action_of, e.history)): (e.reach, e.promised, e.over) for e in made.exits}
    assert left == {tuple(line): pytest.approx((reach, value, over)) for line, reach, value, over in games}
    for move, share in made.coverage.items():
        still = sum(reach for line, reach, _, over in games if over or len(line) // 2 >= move)
        assert share == pytest.approx(still)
    # What forgetting a position costs: all of its orders of moves, one card.
    cards = {card.epd: card for card in book_cards(made.book)}
    assert set(cards) == book.playable and len(made.book) > len(cards)
    for epd, card in cards.items():
        lost = sum(reach * value for _, reach, value, _ in _games(book, policies, forgotten=epd))
        assert card.worth == pytest.approx(max(0.0, made.utility - lost), abs=1e-9)
    (start,) = policies.leaf_value.evaluate_batch([_SETTINGS.game().new_initial_state()])
    assert made.unprepared == pytest.approx(float(start))


def test_the_judgment_says_the_same_and_names_all_holes(book, engines, policies):
    made = repertoire_preparation(book, _SETTINGS, engines, policies=policies)
    judged = judge_repertoire(book, _SETTINGS, engines, policies=policies, horizon=7)
    assert judged.judgment.utility == pytest.approx(made.utility)
    assert judged.judgment.unprepared == pytest.approx(made.unprepared)
    start, holes = chess.Board(), judged.tables()["holes"]
    exits = {start.variation_san(each.history): each.reach for each in made.exits if not each.over}
    assert {row["after"]: row["reach"] for row in holes} == pytest.approx(exits)
    where = {row["after"]: row["where"] for row in holes}
    assert where["1. e4 d5"] == "beside others" and where["1. e4 c5 2. Nf3 e6 3. d4 cxd4"] == "a line ends"
    assert all(row["gain"] >= row["cost"] >= 0.0 for row in holes)


def test_what_is_rare_is_worth_what_stopping_is(book, engines, policies):
    """Lines below the penalty gain nothing, as on the tree that is cut there, and are in the book."""
    often = dataclasses.replace(_SETTINGS, penalty=0.2)
    made = repertoire_preparation(book, often, engines, policies=policies)
    judged = judge_repertoire(book, often, engines, policies=policies)
    assert judged.judgment.utility == pytest.approx(made.utility)
    gains = {each.history: gain for each, gain in zip(made.book.positions, made.gains, strict=True)}
    rare = [each for each in made.book.positions if each.reach < 0.2]
    assert rare and all(gains[each.history] == each.worth == 0.0 for each in rare)
    assert {board.epd() for board in made.book.boards} == book.playable
    assert sum(each.reach for each in made.exits) == pytest.approx(1.0)


def test_unlikely_replies_of_people_are_worth_what_was_before(policies):
    settings = dataclasses.replace(_SETTINGS, opponent="human(rating=1500)", penalty=0.02)
    value = with_likely_replies(policies, settings).leaf_value
    start = settings.game().new_initial_state()
    e4, usual, rare = (action_of(chess.Move.from_uci(move)) for move in ("e2e4", "e7e5", "a7a6"))
    states = [start, start.child(e4).child(usual), start.child(e4).child(rare)]
    first, known, searched = policies.leaf_value.evaluate_batch(states)
    assert list(value.evaluate_batch(states[1:])) == [known, first] and searched != first
    assert with_likely_replies(policies, _SETTINGS) is policies


def test_the_analyst_leaves_the_book_for_two_moves_against_people(book, engines, policies):
    settings = dataclasses.replace(_SETTINGS, opponent="human(rating=1500)", penalty=0.02)

    def farthest(**how):
        """Return the most positions in a row outside of the book where there is a choice."""
        tree = judge_repertoire(book, settings, engines, policies=policies, **how).tree
        far = []
        for history in tree.infoset_history.tolist():
            state, unknown = settings.game().new_initial_state(), 0
            for action in [*tree.actions(history), None]:
                if state.current_player() == 0:
                    unknown = 0 if state.epd in book.positions else unknown + 1
                state = state if action is None else state.child(action)
            far.append(unknown)
        return max(far)

    assert farthest() == 2 < farthest(horizon=7)


def test_all_lines_as_a_book(book):
    """Shares of lines: of five ends, two are behind 1... c5 and two behind 1... e5."""
    lines = book.by_lines()
    shares = {lines.start.variation_san(each.history): each.reach for each in lines.positions}
    assert shares["1. e4 e5"] == shares["1. e4 c5"] == pytest.approx(2 / 5)
    assert shares["1. e4 e5 2. d4 exd4"] == shares["1. e4 e6 2. Nf3 c5"] == pytest.approx(1 / 5)
    (both,) = (each.moves for each in lines.positions if len(each.history) == 2 and len(each.moves) == 2)
    assert [move.probability for move in both] == [0.5, 0.5]
    assert len(lines) == 8 and len(book_cards(lines)) == lines.distinct_positions == 7


def test_the_files_tell_whose_book_it_is(tmp_path):
    blacks = "1. e4 (1. d4 d5) (1. c4 e5) c5 2. Nf3 (2. c3 d5) d6 *"
    assert [read(tmp_path, text, side=None).side for text in (_BOOK, blacks)] == [chess.WHITE, chess.BLACK]
    with pytest.raises(ValueError, match="whose book it is where no side is given, got"):
        read(tmp_path, "1. e4 e5 2. Nf3 *", side=None)
