/* The board, and what there is to say of the position on it. */

// cm-chessboard writes style attributes, which the page's policy forbids. Through the object model they are allowed.
const setAttribute = Element.prototype.setAttribute
Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value
    else setAttribute.call(this, name, value)
}

const trees = JSON.parse(byId("data").textContent).map((book) => new Tree(book))
let tree = trees[0]
let here = tree.nodes[0]
let showRare = false
let dragged = false
let hidesGuesses = false

// Before the board, which measures what it stands in.
byId("app").hidden = byId("tools").hidden = false
const board = new Chessboard(byId("board"), {
    position: fenOf(here.place),
    orientation: tree.side === "white" ? COLOR.white : COLOR.black,
    style: {borderType: BORDER_TYPE.none, animationDuration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180},
    extensions: [{class: Arrows}],
})
board.context.querySelector("svg").setAttribute("aria-label", "Chess board")

board.enableMoveInput((event) => {
    const [from, to] = [event.squareFrom, event.squareTo]
    if (playing) return false
    if (question) return answeredOnBoard(event)
    if (event.type === INPUT_EVENT_TYPE.moveInputStarted) {
        const known = here.children.some((child) => child.uci.startsWith(from))
        if (!known && here.place.turn === event.piece[0]) say("No move of that piece is in this book.")
        return known
    }
    // Of promotions, the likeliest one that the book knows.
    const next = here.children.find((child) => child.uci.startsWith(from + to))
    if (event.type === INPUT_EVENT_TYPE.validateMoveInput) {
        if (!next) say("That move is not in this book.")
        else dragged = true
        return Boolean(next)
    }
    // Once the board is done with the move.
    if (event.type === INPUT_EVENT_TYPE.moveInputFinished && event.legalMove && next) setTimeout(() => go(next))
})

function drawArrows() {
    board.removeArrows()
    const add = (kind, move) => board.addArrow({class: kind}, move.slice(0, 2), move.slice(2, 4))
    let legend = []
    if (playing || question) {
        byId("legend").replaceChildren()
        return
    }
    if (here.ours && here.known) {
        const position = tree.positions[here.position]
        for (const [move] of position.others) add("arrow-other", move)
        for (const [move] of position.play) add("arrow-own", move)
        legend = [["own", "our move"], ...(position.others.length ? [["other", "also on the menu"]] : [])]
    } else if (!here.ours && here.children.length) {
        for (const child of [...here.children].reverse()) {
            const share = tree.probability(child) ?? 1
            if (share >= RARE && !isHidden(child)) add(`arrow-reply-${share >= 0.3 ? 3 : share >= 0.05 ? 2 : 1}`, child.uci)
        }
        legend = [["reply", "replies, the darker the likelier"]]
    }
    byId("legend").replaceChildren(...legend.flatMap(([kind, text]) => [element("span", {class: `key ${kind}`}), text]))
}

/** The engine's opinion, as a bar from White's side. */
function drawEvaluation(node) {
    const bar = byId("evaluation")
    const found = node ? tree.evaluation(node) : null
    const share = found ? 1 / (1 + Math.exp(-0.37 * found.pawns)) : 0.5
    const upright = wanted === COLOR.white
    bar.className = `${found ? "" : "unknown"} ${upright ? "" : "turned"}`
    bar.firstElementChild.style.height = `${(100 * share).toFixed(1)}%`
    bar.lastElementChild.textContent = found ? found.text : "–"
    bar.setAttribute("aria-label", found ? `Engine: ${found.text} for White` : "No evaluation by an engine here")
    bar.title = bar.getAttribute("aria-label")
}

// -- where we are ----------------------------------------------------------------------------------------

/** Replies that rest on guesses, where the switch hides them. */
const isHidden = (node) => hidesGuesses && node.rests

function go(node, scrolls = true) {
    if (question) return
    playing = null
    here = node
    showRare = false
    board.setPosition(fenOf(node.place), !dragged)
    dragged = false
    show(scrolls)
}

function show(scrolls = true) {
    drawArrows()
    drawEvaluation(here)
    showHere()
    showGames()
    markLine(scrolls)
    enableControls(here.number > 0, here.children.length > 0)
}

function enableControls(before, after) {
    byId("back").disabled = byId("first").disabled = !before
    byId("forward").disabled = byId("last").disabled = !after
}

function say(text) {
    const old = byId("notice")
    if (old) old.remove()
    byId("here").append(element("p", {id: "notice", class: "warn"}, text))
}

function table(head, rows) {
    return element(
        "table", {},
        element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {scope: "col"}, text)))),
        element("tbody", {}, ...rows),
    )
}

function numbers(pairs) {
    const shown = pairs.filter(([, value]) => value !== null)
    return element(
        "dl", {class: "numbers"},
        ...shown.map(([name, value, id]) => element("div", {}, element("dt", {}, name), element("dd", {"data-number": id}, value))),
    )
}

/** A line as buttons: the start, and each move after it. */
function lineOf(moves, start) {
    const line = element("p", {class: "line"}, ...[start, ...moves].map(({text, go: action, current}) =>
        element("button", {onclick: action, ...(current ? {"aria-current": "true"} : {})}, text)))
    return line
}

function showHere() {
    const path = tree.path(here)
    const start = {text: "Start", go: () => go(tree.nodes[0]), current: !here.number}
    const line = lineOf(path.slice(1).map((node, k) => ({
        text: tree.number(node.ply, k === 0) + node.san, go: () => go(node), current: node === here,
    })), start)
    const parts = [line]
    if (here.opening) parts.push(element("p", {class: "opening"}, here.opening))
    const mark = backing(tree, here)
    if (mark) parts.push(element("p", {}, element("b", {}, here.san), ": ", mark))
    else if (here.rests) parts.push(element("p", {}, element("span", {class: tree.unseenClass}, `rests on ${tree.unseen}`)))
    parts.push(...(here.ours ? ourTurn() : theirTurn()))
    if (here.note) parts.push(element("p", {class: "note"}, element("bdi", {}, here.note)))
    byId("here").replaceChildren(...parts)
    line.scrollTop = line.scrollHeight
}

const scoreLabel = () => `${tree.scoreName.toLowerCase()}, of 100`

function ourTurn() {
    if (!here.inBook) return leaves()
    const position = tree.positions[here.position]
    const how = position.play.map(([, san, share]) => (position.play.length > 1 ? `${san} (${percent(share)})` : san))
    const verdict = here.known
        ? element("p", {class: "verdict"}, "We play ", element("b", {}, how.join(", ")))
        : element("p", {class: "verdict warn"}, `Not in the best ${plural(tree.budget, "position")}`)
    const parts = [
        verdict,
        numbers([
            ["comes up in", `${percent(position.reach)} of games`, "reach"],
            [scoreLabel(), score(tree.score(here)), "score"],
            ["forgetting it costs", here.known ? `${points(tree.worth(here))} in 100 games` : null, "worth"],
        ]),
    ]
    if (here.known && position.sentences) parts.push(element("p", {class: "why"}, position.sentences))
    if (here.known && position.others.length) {
        const rows = position.others.map(([move, san, loss]) =>
            element("tr", {"data-move": move}, element("td", {}, san), element("td", {}, signed(-loss))))
        parts.push(table(["Also on the menu", "points in 100 games"], rows))
    }
    return parts
}

function leaves() {
    if (!here.leaves) return [element("p", {class: "verdict"}, "Our move is not in the book here.")]
    const promised = here.value === null || !here.mass ? null : here.value / here.mass
    return [
        element("p", {class: "verdict"}, here.over ? "The game is over." : "The book ends here."),
        numbers([
            ["games leave here", percent(here.mass), "reach"],
            [here.over ? "score" : scoreLabel(), score(promised), "score"],
            ["scored", here.played ? `${score(here.played[1])} of 100, in ${plural(here.played[0], "game")}` : null, "scored"],
        ]),
    ]
}

function theirTurn() {
    if (!here.children.length) return leaves()
    const before = here.parent
    const learned = !before || !before.inBook || before.known
    const known = here.children.filter((child) => !isHidden(child))
    const rows = known.map((child) => {
        const share = tree.probability(child)
        const mark = backing(tree, child)
        const then = child.over ? "game over" : child.known ? plural(child.kept, "position") : "book ends"
        return {
            share,
            mark: mark && element("tr", {class: "mark", "data-behind": child.uci}, element("td", {colspan: 4}, mark)),
            row: element(
                "tr", {"data-move": child.uci},
                element("td", {}, element("button", {onclick: () => go(child)}, child.san)),
                element("td", {class: "share"}, element("div", {class: "bar"},
                    element("progress", {max: 1, value: share ?? 0, "aria-hidden": "true"}), element("span", {}, share === null ? "–" : percent(share)))),
                element("td", {}, score(tree.score(child))),
                element("td", {class: "small"}, then),
            ),
        }
    })
    const rare = rows.filter(({share}) => share !== null && share < RARE)
    const shown = showRare || rare.length < 3 ? rows : rows.filter((row) => !rare.includes(row))
    const parts = []
    if (!learned) parts.push(element("p", {class: "verdict warn"}, "Our move before this is not learned."))
    parts.push(
        numbers([
            ["comes up in", here.mass > 0 ? `${percent(here.mass)} of games` : null, "reach"],
            [scoreLabel(), score(tree.score(here)), "score"],
        ]),
        table(["Reply", "how likely", "points", "then"], shown.flatMap(({row, mark}) => (mark ? [row, mark] : [row]))),
    )
    if (shown.length < rows.length) {
        parts.push(element("button", {id: "rare", onclick: () => { showRare = true; showHere() }},
            `${rare.length} rarer replies, below ${percent(RARE).replace("0%", "%")} each`))
    }
    const hidden = here.children.length - known.length
    if (hidden) parts.push(element("p", {class: "small"}, `${plural(hidden, "reply").replace("replys", "replies")} hidden`))
    if (tree.source) parts.push(element("p", {class: "small source"}, "Replies: ", element("bdi", {}, tree.source)))
    return parts
}
