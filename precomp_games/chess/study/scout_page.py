"""Statistics of a player's games for people: rows of lines in whole words, a page, and a PGN file.

The page is one file without a script, with a content security policy, as in `page`: lines fold by
themselves. Names come from files of games: they are escaped, and cut to a length that a page can show.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import chess
import chess.pgn
from markupsafe import Markup

from precomp_games._support import checks
from precomp_games._support.checks import counted, plain_text, public
from precomp_games._support.files import atomic_write
from precomp_games.chess.data.book import percent, pgn_text, points, set_headers
from precomp_games.chess.data.game_records import month_of
from precomp_games.chess.data.scouting import ColorScouting, ScoutedLine, Scouting, SpeedScouting, Tally
from precomp_games.chess.study.page import asset, policy, template
from precomp_games.chess.study.words import opening_name

FORM = ("", "games", "points", "±", "perf.", "opponents", "left by")
"""The columns of `form_rows`."""
NEW = ("games", "points", "met before", "instead of", "line")
"""The columns of `new_rows`."""
TIMES = {"all": "all games", "last": "last {}", "year": "last year", "before": "before"}
"""Labels of the keys of `ColorScouting.form`."""
_SPANS = ((2, 5), (6, 10), (11, 15), (16, 20), (21, 30))  # moves; clocks begin behind the first one
_SAME = 0.9  # of the games before it: a single such reply continues the same row
_OPEN = 0.05  # of a color's games: lines that the page shows unfolded
_NAME = 80  # characters
_UNKNOWN = "–"


class LineRow(NamedTuple):
    """Moves of a line in one row, and the rows after them.

    Attributes:
        text: the moves, such as "2. Nf3 Nc6".
        line: the last of them, whose games are shown.
        share: of all games with the color.
        name: the opening's; None if it is that of the row above.
        rows: the rows after it.
    """

    text: str
    line: ScoutedLine
    share: float
    name: str | None
    rows: tuple[LineRow, ...]

    def flat(self, depth: int = 0) -> Iterator[tuple[int, LineRow]]:
        """Yield the row and all below it, with their depth."""
        yield depth, self
        for row in self.rows:
            yield from row.flat(depth + 1)


def line_rows(color: ColorScouting, fewest: float = 0.0) -> tuple[LineRow, ...]:
    """Return the lines of a color with at least `fewest` games; nearly certain replies have no own row."""

    def rows(line: ScoutedLine, board: chess.Board, above: str | None) -> tuple[LineRow, ...]:
        return tuple(row(reply, board, above) for reply in line.replies if reply.tally.games >= fewest)

    def row(line: ScoutedLine, board: chess.Board, above: str | None) -> LineRow:
        assert line.move is not None
        moves, name, after = [line.move], above, board.copy(stack=False)
        while True:
            after.push(moves[-1])
            name = opening_name(after) or name
            replies = [each for each in line.replies if each.tally.games >= fewest]
            if len(replies) != 1 or replies[0].tally.games < _SAME * line.tally.games:
                share = line.tally.games / color.lines.tally.games
                own = None if name == above else name
                return LineRow(board.variation_san(moves), line, share, own, rows(line, after, name))
            (line,) = replies
            assert line.move is not None
            moves.append(line.move)

    return rows(color.lines, chess.Board(), None)


def fitting_rows(color: ColorScouting, most: int) -> list[tuple[int, LineRow]]:
    """Return as many lines as `most` rows can show, the most frequent ones, with their depth."""
    games = color.lines.tally.games
    flat: list[tuple[int, LineRow]] = []
    for hundredths in (*range(1, 20), *range(20, 101, 5)):
        flat = [each for row in line_rows(color, games * hundredths / 100.0) for each in row.flat()]
        if len(flat) <= most:
            break
    return flat


# -- in words ----------------------------------------------------------------------------------------------


def score_words(tally: Tally) -> str:
    """Return the points in 100 games."""
    return _UNKNOWN if tally.score is None else points(tally.score) if tally.score else "0"


def rating_words(rating: float | None) -> str:
    """Return a rating, or its placeholder."""
    return _UNKNOWN if rating is None else f"{rating:.0f}"


def last_words(line: ScoutedLine) -> str:
    """Return the date when a line was last played."""
    return _UNKNOWN if line.last is None else month_of(line.last)


def games_words(scouting: Scouting) -> str:
    """Return the number of games, their dates, and the player's rating then."""
    parts = [counted(scouting.games, "game", ",")]
    if scouting.years is not None:
        parts.append(" to ".join(dict.fromkeys(map(month_of, scouting.years))))
    if scouting.ratings is not None:
        parts.append(f"rated {', then '.join(map(str, dict.fromkeys(scouting.ratings)))}")
    return ", ".join(parts)


def taken_words(scouting: Scouting) -> str:
    """Return the number of games that each filter removed; "" if none."""
    return ", ".join(f"{count} by --{name}" for name, count in scouting.taken.items() if count)


def leaving_words(scouting: Scouting, color: ColorScouting) -> str:
    """Describe when games leave known positions."""
    leaving = color.form["all"].leaving
    if not leaving.left:
        return f"no game leaves what {scouting.known} games before it had"
    who = 100.0 * leaving.by_player / leaving.left
    known = f"the positions that {scouting.known} games before them had"
    begin = f"by move {leaving.median}, half of the games have left {known}"
    if leaving.median is None:
        begin = f"{leaving.left} games leave {known}"
    return f"{begin}; {who:.0f} of 100 by a move of the player's"


def form_rows(scouting: Scouting, color: ColorScouting) -> list[tuple[str, ...]]:
    """Return the form as a table; the last column is the median move of leaving known positions."""
    return [
        (
            *(TIMES[name].format(scouting.recent), str(tally.games), score_words(tally)),
            _UNKNOWN if tally.error is None else points(tally.error),
            *(rating_words(tally.performance), rating_words(tally.opponents)),
            _UNKNOWN if leaving.median is None else str(leaving.median),
        )
        for name, (tally, leaving) in color.form.items()
    ]


def new_rows(color: ColorScouting) -> list[tuple[str, ...]]:
    """Return new moves as a table: number of games, points, and the move mostly played there before."""
    rows: list[tuple[str, ...]] = []
    for new in color.new:
        board = chess.Board()
        line = board.variation_san(new.line)
        for move in new.line[:-1]:
            board.push(move)
        instead = _UNKNOWN if new.instead is None else board.san(new.instead)
        rows.append((str(new.tally.games), score_words(new.tally), str(new.before), instead, line))
    return rows


def speed_table(scouting: Scouting) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the rows of a table of speeds, with seconds a move where clocks are known."""
    spans = _SPANS if any(each.seconds for each in scouting.speeds) else ()
    header = ["speed", "games", "share", "points", "perf.", *(f"{first}–{last}" for first, last in spans)]
    return header, [
        (
            *(each.speed or "unknown", str(each.tally.games)),
            *(percent(each.tally.games / scouting.games), score_words(each.tally)),
            *(rating_words(each.tally.performance), *(_seconds(each, *span) for span in spans)),
        )
        for each in scouting.speeds
    ]


def _seconds(each: SpeedScouting, first: int, last: int) -> str:
    """Return the mean seconds of the player's moves from one number to another."""
    among = [each.seconds[move] for move in range(first, last + 1) if move in each.seconds]
    moves = sum(count for count, _ in among)
    return f"{sum(count * mean for count, mean in among) / moves:.1f}" if moves else _UNKNOWN


# -- files -------------------------------------------------------------------------------------------------


@public
def write_scout_page(path: checks.FilePath, scouting: Scouting, files: Mapping[str, str]) -> None:
    """Write the statistics of a player's games as a page; the same games give the same bytes.

    Args:
        path: the file, which is replaced atomically.
        scouting: the statistics.
        files: names of other files beside it that the page links, by title.

    Raises:
        OSError: the file cannot be written.
    """
    style = f"{asset('report_page/page.css')}\n{asset('report_page/scout.css')}"
    colors = [
        {
            "color": each.color,
            "games": each.lines.tally.games,
            "rows": line_rows(each),
            "all": each.lines.tally,
            "leaving": leaving_words(scouting, each),
            "form": form_rows(scouting, each),
            "new": new_rows(each),
        }
        for each in scouting.colors
    ]
    page = template("scout.html").render(
        title=plain_text(scouting.player, _NAME),
        games=games_words(scouting),
        scouting=scouting,
        colors=colors,
        speeds=speed_table(scouting),
        header_of_form=FORM,
        header_of_new=NEW,
        open=_OPEN,
        score=score_words,
        rating=rating_words,
        last=last_words,
        taken=taken_words(scouting),
        files=files,
        style=Markup(style),
        policy=policy(style),
    )
    with atomic_write(path) as file:
        file.write(page)


def scout_pgn(scouting: Scouting) -> str:
    """Return the lines as PGN: a game a color, with variations, and each line's frequency and results."""
    text = io.StringIO()
    for color in scouting.colors:
        game = chess.pgn.Game()
        name = plain_text(scouting.player, _NAME)
        sides = {"white": name, "black": "?"} if color.color == "white" else {"white": "?", "black": name}
        event = f"{name} with {color.color.capitalize()}: {counted(color.lines.tally.games, 'game')}"
        set_headers(game, {"Event": event, "White": sides["white"], "Black": sides["black"]})
        nodes: list[tuple[chess.pgn.GameNode, ScoutedLine]] = [(game, color.lines)]
        for node, line in nodes:  # grows as it goes
            for reply in line.replies:
                assert reply.move is not None
                tally, share = reply.tally, reply.tally.games / color.lines.tally.games
                parts = [f"{counted(tally.games, 'game')} ({share:.1%})"]
                parts += [f"{score_words(tally)} points in 100"] * (tally.score is not None)
                parts += [f"performance {rating_words(tally.performance)}"] * (tally.performance is not None)
                parts += [f"last {last_words(reply)}"] * (reply.last is not None)
                nodes.append((node.add_variation(reply.move, comment=", ".join(parts)), reply))
        text.write(pgn_text(game))
    return text.getvalue()
