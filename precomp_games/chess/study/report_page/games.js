/* Games of the opponent at a position, and how they went on. */

const USUAL_START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
let playing = null // {game, places, ply}
let listedGames = []

/** The games behind a position: those of the reply that led to it, or of the replies to our move. */
function gamesHere() {
    const nodes = here.ours ? [here] : here.children.filter((child) => !isHidden(child))
    const found = new Map()
    let count = 0
    for (const node of nodes) {
        if (!node.games) continue
        count += node.games[0]
        for (const number of node.games.slice(1)) if (!found.has(number)) found.set(number, node)
    }
    const games = [...found].map(([number, node]) => ({game: tree.games[number], reply: node.san}))
    games.sort((one, other) => (other.game[2] ?? -1) - (one.game[2] ?? -1))
    return {games, count}
}

function gameName([white, black, year, result]) {
    const ended = {"1/2-1/2": "½–½", "1-0": "1–0", "0-1": "0–1"}[result] ?? result
    return [element("bdi", {}, white), " – ", element("bdi", {}, black), year === null ? "" : `, ${year}`, ": ", element("bdi", {}, ended)]
}

function showGames() {
    const card = byId("games")
    const {games, count} = gamesHere()
    listedGames = games
    card.hidden = !tree.guess || Boolean(question) || (here.ours && !here.parent)
    if (card.hidden) return
    if (!count) {
        card.replaceChildren(element("p", {}, "In none of their games",
            here.ours ? element("span", {}, ": ", element("span", {class: tree.unseenClass}, tree.guess)) : ""))
        return
    }
    const items = games.map(({game, reply}) => element("li", {}, element(
        "button", {class: "game", disabled: game[4] ? null : "", onclick: () => playGame(game)},
        ...(here.ours ? [] : [element("b", {}, reply), " "]), ...gameName(game))))
    const rest = count - games.length
    card.replaceChildren(
        element("h2", {}, `${here.ours ? `${here.san} in` : "Replies in"} ${plural(count, "game")} of theirs`),
        element("ul", {class: "games"}, ...items),
        rest > 0 ? element("p", {class: "small"}, `and ${rest} older or undated`) : "",
    )
}

/** Begins to play a game through, from where the board stands if the game came there. */
function playGame(game) {
    const [sans, squares] = [game[4].split(" "), game[5]]
    const places = [placed(USUAL_START)]
    const moves = sans.map((san, k) => {
        const [from, to] = [squares[2 * k], squares[2 * k + 1]].map((character) => squareName(SQUARES.indexOf(character)))
        return from + to + (/=([QRBN])/.exec(san)?.[1].toLowerCase() ?? "")
    })
    for (const move of moves) places.push(played(places.at(-1), move))
    const there = fenOf(here.place)
    const ply = Math.max(0, places.findIndex((place) => fenOf(place) === there))
    playing = {game, sans, places, ply}
    showGame()
    byId("here").querySelector("button[aria-current]").focus()
}

/** Goes so many half-moves on in the game. */
function inGame(ply) {
    playing.ply = clamp(ply, 0, playing.sans.length)
    showGame()
}

function leaveGame() {
    const row = listedGames.findIndex(({game}) => game === playing.game)
    go(here)
    byId("games").querySelectorAll("button")[row]?.focus()
}

function showGame() {
    const {game, sans, places, ply} = playing
    board.setPosition(fenOf(places[ply]), true)
    drawArrows()
    const fen = fenOf(places[ply])
    drawEvaluation(tree.nodes.find((node) => node.inBook && fenOf(node.place) === fen) ?? null)
    enableControls(ply > 0, ply < sans.length)
    const start = {text: "Start", go: () => inGame(0), current: ply === 0}
    const line = lineOf(sans.map((san, k) => ({
        text: tree.number(k + 1, k === 0) + san, go: () => inGame(k + 1), current: k + 1 === ply,
    })), start)
    line.classList.add("whole")
    const focused = byId("here").contains(document.activeElement)
    byId("here").replaceChildren(
        element("p", {class: "verdict"}, ...gameName(game)),
        line,
        element("button", {id: "leave", onclick: leaveGame}, "Back to the book (Esc)"),
    )
    const current = line.querySelector("[aria-current]")
    if (focused) current.focus({preventScroll: true})
    line.scrollTop = current.offsetTop - line.offsetTop - line.clientHeight / 2
}
