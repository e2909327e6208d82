"""A repertoire as a preparation: against an enumeration of all games, and the judgment on a tree."""

import dataclasses

import chess
import pytest

from precomp_games.chess import (
    EnginePool,
    Engines,
    EvaluationStore,
    PreparationSettings,
    StoredEngine,
    judge_repertoire,
    read_repertoire,
)
from precomp_games.chess.game import action_of
from precomp_games.chess.plan.repertoire_book import repertoire_preparation, with_likely_replies
from precomp_games.chess.study.drill import book_cards
from tests.oracles.engines import HashEngine

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
    (tmp_path / "mine.pgn").write_text(_BOOK)
    return read_repertoire(tmp_path / "mine.pgn", chess.WHITE)


def _games(book, policies, forgotten=None):
    """Yield all ways in which games leave the book: (line, reach, what it is worth, whether it is over)."""

    def value(state):
        return float(policies.leaf_value.evaluate_batch([state])[0])

    def walk(state, reach):
        if state.is_terminal():
            yield state.history(), reach, state.returns()[0], True
        elif state.current_player() == 0:
            known = book.positions.get(state.epd) if state.epd != forgotten else None
            if known is None:
                yield state.history(), reach, value(state), False
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
    path = tmp_path / "mine.pgn"
    blacks = "1. e4 (1. d4 d5) (1. c4 e5) c5 2. Nf3 (2. c3 d5) d6 *"
    for text, side in ((_BOOK, chess.WHITE), (blacks, chess.BLACK)):
        path.write_text(text)
        assert read_repertoire(path).side == side
    path.write_text("1. e4 e5 2. Nf3 *")
    with pytest.raises(ValueError, match="whose book it is where no side is given, got"):
        read_repertoire(path)
