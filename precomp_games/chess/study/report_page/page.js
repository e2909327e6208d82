/* The page of a book: the board, the position on it, the lines, and what a smaller budget leaves of them. */

// cm-chessboard writes style attributes, which the page's policy forbids. Through the object model they are allowed.
const setAttribute = Element.prototype.setAttribute
Element.prototype.setAttribute = function (name, value) {
    if (name === "style") this.style.cssText = value
    else setAttribute.call(this, name, value)
}

const RARE = 0.001 // replies less likely than this are shown on demand
const MOST_ROWS = 3000
const byId = (id) => document.getElementById(id)

/** An element with properties and children; text is text, whatever stands in it. */
function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag)
    for (const [name, value] of Object.entries(properties)) {
        if (name === "class") made.className = value
        else if (name.startsWith("on")) made.addEventListener(name.slice(2), value)
        else if (value !== null && value !== undefined) made.setAttribute(name, value)
    }
    made.append(...children.filter((child) => child !== null))
    return made
}

function percent(fraction) {
    const value = 100 * fraction
    if (value === 0) return "0%"
    if (value < 0.01) return "< 0.01%"
    return (value >= 99.95 ? "100" : value >= 10 ? value.toFixed(1) : value.toFixed(2)) + "%"
}
const score = (value) => (value === null ? "–" : value.toFixed(3))
const cost = (value) => (Math.abs(value) < 0.00005 ? "0.0000" : value.toFixed(4)).replace("-", "−")
const signed = (value) => (value > 0 ? "+" : "") + cost(value)
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`

/** A book's tree, and what a budget leaves of it. */
class Tree {
    constructor(book) {
        Object.assign(this, book)
        this.size = this.positions.length
        this.nodes.forEach((node, number) => {
            node.number = number
            node.children = []
            node.inBook = node.position !== undefined
            if (number) {
                const parent = this.nodes[node.parent]
                parent.children.push(node)
                node.ply = parent.ply + 1
            } else {
                const fields = node.fen.split(" ")
                node.ply = 2 * (Number(fields[5]) - 1) + (fields[1] === "b" ? 1 : 0)
            }
            node.ours = (node.fen.split(" ")[1] === "w") === (this.side === "white")
            if (node.inBook) this.positions[node.position].node = node
        })
        this.learn(this.size)
    }

    /** Keeps the best part of the book with at most `budget` positions. */
    learn(budget) {
        this.budget = budget
        const kept = new Array(this.size).fill(false)
        for (const change of this.changes.slice(0, budget)) for (const position of change) kept[position] = !kept[position]
        this.learned = kept.filter((known) => known).length
        for (const node of this.nodes) {
            node.lost = 0 // gains of positions here and below that are not learned
            node.lostCount = 0
            node.kept = 0 // positions here and below that are learned
        }
        for (let number = this.nodes.length - 1; number >= 0; number--) {
            const node = this.nodes[number]
            node.known = node.inBook && kept[node.position]
            if (node.known) node.kept += 1
            else if (node.inBook) {
                node.lost += this.gains[node.position]
                node.lostCount += 1
            }
            if (number) {
                const parent = this.nodes[node.parent]
                parent.lost += node.lost
                parent.lostCount += node.lostCount
                parent.kept += node.kept
            }
        }
    }

    parent(node) {
        return node.number ? this.nodes[node.parent] : null
    }

    path(node) {
        const found = []
        for (let each = node; each; each = this.parent(each)) found.unshift(each)
        return found
    }

    /** The expected score of games that come here, with what is learned; null where it is not known. */
    score(node) {
        if (node.value === null || !(node.mass > 0)) return null
        return Math.min(1, Math.max(0, (node.value - node.lost) / node.mass))
    }

    /** What forgetting a position and all that follows it would cost, with what is learned. */
    worth(node) {
        return this.positions[node.position].worth - (node.lost - this.price * node.lostCount)
    }

    probability(node) {
        const parent = this.parent(node)
        return parent && parent.mass > 0 ? node.mass / parent.mass : null
    }

    /** "12." before White's moves, "12…" before Black's where `always`. */
    number(node, always) {
        const move = Math.ceil(node.ply / 2)
        return node.ply % 2 ? `${move}.\u00a0` : always ? `${move}…\u00a0` : ""
    }
}

const trees = JSON.parse(byId("data").textContent).map((book) => new Tree(book))
let tree = trees[0]
let here = tree.nodes[0]
let showRare = false
let dragged = false
let matching = []
const last = new Map() // where each book was left

// -- the board ------------------------------------------------------------------------------------------

// Before the board, which measures what it stands in.
byId("app").hidden = false
const board = new Chessboard(byId("board"), {
    position: here.fen,
    orientation: tree.side === "white" ? COLOR.white : COLOR.black,
    style: {borderType: BORDER_TYPE.none, animationDuration: matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180},
    extensions: [{class: Arrows}],
})
board.context.querySelector("svg").setAttribute("aria-label", "Chess board")

board.enableMoveInput((event) => {
    const moves = continuations(here).map(({move}) => move)
    if (event.type === INPUT_EVENT_TYPE.moveInputStarted) {
        const from = moves.some((move) => move.startsWith(event.squareFrom))
        const turn = here.fen.split(" ")[1] === event.piece[0]
        if (!from && turn) say("No move of that piece is in this book.")
        return from
    }
    if (event.type === INPUT_EVENT_TYPE.validateMoveInput) {
        // Of promotions, the likeliest one that the book knows.
        const next = here.children.find((child) => child.uci.startsWith(event.squareFrom + event.squareTo))
        if (!next) {
            say("That move is not in this book.")
            return false
        }
        dragged = true
        return true
    }
    if (event.type === INPUT_EVENT_TYPE.moveInputFinished && event.legalMove) {
        const next = here.children.find((child) => child.uci.startsWith(event.squareFrom + event.squareTo))
        // Once the board is done with the move.
        if (next) setTimeout(() => go(next))
    }
})

/** What can be played on from a node: {move, node}. */
function continuations(node) {
    return node.children.map((child) => ({move: child.uci, node: child}))
}

function drawArrows() {
    board.removeArrows()
    const add = (kind, move) => board.addArrow({class: kind}, move.slice(0, 2), move.slice(2, 4))
    let legend = []
    if (here.ours && here.known) {
        const position = tree.positions[here.position]
        for (const [move] of position.others) add("arrow-other", move)
        for (const [move] of position.play) add("arrow-own", move)
        legend = [["own", "our move"], ...(position.others.length ? [["other", "also on the menu"]] : [])]
    } else if (!here.ours && here.children.length) {
        for (const child of [...here.children].reverse()) {
            const share = tree.probability(child) ?? 1
            if (share >= RARE) add(`arrow-reply-${share >= 0.3 ? 3 : share >= 0.05 ? 2 : 1}`, child.uci)
        }
        legend = [["reply", "replies, the darker the likelier"]]
    }
    byId("legend").replaceChildren(
        ...legend.flatMap(([kind, text]) => [element("span", {class: `key ${kind}`}), text]),
    )
}

// -- where we are ----------------------------------------------------------------------------------------

function go(node, focusRow = true) {
    here = node
    showRare = false
    board.setPosition(node.fen, !dragged)
    dragged = false
    show(focusRow)
}

function show(scroll = true) {
    drawArrows()
    showHere()
    markRow(scroll)
    byId("back").disabled = byId("first").disabled = !here.number
    byId("forward").disabled = byId("last").disabled = !here.children.length
}

function say(text) {
    const old = byId("said")
    if (old) old.remove()
    byId("here").append(element("p", {id: "said", class: "warn"}, text))
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
        ...shown.map(([name, value, id]) =>
            element("div", {}, element("dt", {}, name), element("dd", {"data-number": id}, value))),
    )
}

function showHere() {
    const path = tree.path(here)
    const line = element(
        "p", {class: "line"},
        element("button", {onclick: () => go(tree.nodes[0]), ...(here.number ? {} : {"aria-current": "true"})}, "Start"),
        ...path.slice(1).map((node, k) =>
            element(
                "button", {onclick: () => go(node), ...(node === here ? {"aria-current": "true"} : {})},
                tree.number(node, k === 0) + node.san,
            )),
    )
    const parts = [line]
    if (here.ours) parts.push(...ourTurn())
    else parts.push(...theirTurn())
    if (here.note) parts.push(element("p", {class: "note"}, element("bdi", {}, here.note)))
    byId("here").replaceChildren(...parts)
    line.scrollTop = line.scrollHeight
}

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
            [tree.scoreName.toLowerCase(), score(tree.score(here)), "score"],
            ["forgetting it costs", here.known ? cost(tree.worth(here)) : null, "worth"],
        ]),
    ]
    if (here.known && position.others.length) {
        const rows = position.others.map(([move, san, loss]) =>
            element("tr", {"data-move": move}, element("td", {}, san), element("td", {}, signed(-loss))))
        parts.push(table(["Also on the menu", "would change the score by"], rows))
    }
    return parts
}

function leaves() {
    const exit = here.exit
    if (!exit) return [element("p", {class: "verdict"}, "Our move is not in the book here.")]
    return [
        element("p", {class: "verdict"}, exit.over ? "The game is over." : "The book ends here."),
        numbers([
            ["games leave here", percent(here.mass), "reach"],
            [exit.over ? "score" : tree.scoreName.toLowerCase(), score(exit.promised), "score"],
            ["scored", here.played ? `${score(here.played[1])} in ${plural(here.played[0], "game")}` : null, "scored"],
        ]),
    ]
}

function theirTurn() {
    if (!here.children.length) return leaves()
    const before = tree.parent(here)
    const learned = !before || !before.inBook || before.known
    const rows = here.children.map((child) => {
        const share = tree.probability(child)
        const what = child.exit && child.exit.over ? "game over" : child.known ? plural(child.kept, "position") : "book ends"
        return {
            share,
            games: gamesOf(child),
            row: element(
                "tr", {"data-move": child.uci},
                element("td", {}, element("button", {onclick: () => go(child)}, child.san)),
                element("td", {class: "share"}, element("div", {class: "bar"},
                    element("progress", {max: 1, value: share ?? 0, "aria-hidden": "true"}), element("span", {}, share === null ? "–" : percent(share)))),
                element("td", {}, score(tree.score(child))),
                element("td", {class: "small"}, what),
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
            [tree.scoreName.toLowerCase(), score(tree.score(here)), "score"],
        ]),
        table(["Reply", "how likely", "score", "then"], shown.flatMap(({row, games}) => (games ? [row, games] : [row]))),
    )
    if (shown.length < rows.length) {
        parts.push(element("button", {id: "rare", onclick: () => { showRare = true; showHere() }},
            `${rare.length} rarer replies, below ${percent(RARE)} each`))
    }
    if (tree.source) parts.push(element("p", {class: "small source"}, "Replies: ", element("bdi", {}, tree.source)))
    return parts
}

/** A row with the games in which a reply was played: how many, and the newest of them; null where nobody has games. */
function gamesOf(node) {
    if (!tree.games.length) return null
    if (!node.games) return element("tr", {class: "games", "data-games": node.uci}, element("td", {colspan: 4}, "in no game"))
    const [count, ...numbers] = node.games
    const games = numbers.map((number) => {
        const [white, black, year, result] = tree.games[number]
        return element("li", {}, element("bdi", {}, white), " – ", element("bdi", {}, black), `${year === null ? "" : `, ${year}`}: `,
            element("bdi", {}, result))
    })
    const rest = count - games.length
    if (rest > 0) games.push(element("li", {}, `and ${rest} older or undated`))
    const list = element("details", {}, element("summary", {}, `played in ${plural(count, "game")}`), element("ul", {}, ...games))
    return element("tr", {class: "games", "data-games": node.uci}, element("td", {colspan: 4}, list))
}

// -- the lines -------------------------------------------------------------------------------------------

/** Rows of the tree in the order of a score sheet: a move, what else was possible, and how it goes on. */
function buildRows() {
    const rows = []
    const relevant = (node) => node.children.filter((child) => child.inBook || child.children.length)
    const tasks = []
    const below = (node, depth) => () => {
        const [main, ...others] = relevant(node)
        if (!main) return
        tasks.push(below(main, depth))
        for (const child of others.reverse()) tasks.push(below(child, depth + 1), row(child, depth + 1, true))
        tasks.push(row(main, depth, false))
    }
    const row = (node, depth, branch) => () => node.inBook && rows.push({node, depth, branch})
    tasks.push(below(tree.nodes[0], 0), row(tree.nodes[0], 0, false))
    while (tasks.length && rows.length < MOST_ROWS) tasks.pop()()
    tree.rows = rows
    for (const row of rows) {
        const {node} = row
        const position = tree.positions[node.position]
        const reply = node.number
            ? [element("span", {class: "reply"}, tree.number(node, true) + node.san + " ")]
            : []
        const own = position.play.map(([, san]) => san).join("/")
        const number = tree.number({ply: node.ply + 1}, !node.number)
        row.reach = element("span", {}, percent(position.reach))
        row.score = element("span", {})
        row.worth = element("span", {})
        row.element = element(
            "button", {class: "row", "data-position": node.position, onclick: () => go(node, false)},
            element("span", {class: `d${Math.min(row.depth, 6)}${row.depth ? " branch" : ""}`}, ...reply,
                element("span", {class: "own"}, number + own)),
            row.reach, row.score, row.worth,
        )
        row.element.tabIndex = -1
        node.row = row
        const moves = tree.path(node).slice(1)
        row.words = [...moves.map((each) => [plainMove(each.san), each.uci]), ...position.play.slice(0, 1).map(([uci, san]) => [plainMove(san), uci])]
    }
    byId("rows").replaceChildren(...rows.map(({element}) => element))
}

const plainMove = (san) => san.replace(/[+#x=!?]/g, "")

/** Whether the words of a search stand next to each other in a row's line; the last one may be a beginning. */
function hasMoves(row, words) {
    return row.words.some((_, start) =>
        words.every((word, k) => {
            const move = row.words[start + k]
            return move && move.some((text) => (k === words.length - 1 ? text.startsWith(word) : text === word))
        }))
}

function searched(text) {
    if (!text) return () => true
    if (text.includes("/")) {
        const [squares, turn] = text.split(/\s+/)
        return ({node}) => {
            // The position itself, or the one after our move in it.
            return [node, ...node.children].some((each) => {
                const fields = each.fen.split(" ")
                return fields[0] === squares && (!turn || turn === fields[1])
            })
        }
    }
    const words = text.replace(/\d+\s*(\.+|…)/g, " ").trim().split(/\s+/).map(plainMove).filter((word) => word)
    return (row) => hasMoves(row, words)
}

function filterRows() {
    const reach = Number(byId("min-reach").value)
    const worth = Number(byId("min-worth").value) || -Infinity
    const fits = searched(byId("search").value.trim())
    matching = []
    for (const row of tree.rows) {
        const {node} = row
        const visible = node.known && tree.positions[node.position].reach >= reach && tree.worth(node) >= worth && fits(row)
        row.element.hidden = !visible
        if (!visible) continue
        matching.push(row)
        row.score.textContent = score(tree.score(node))
        row.worth.textContent = cost(tree.worth(node))
    }
    const learned = tree.learned
    byId("count").textContent = matching.length === learned
        ? plural(learned, "position")
        : `${matching.length} of ${plural(learned, "position")}`
}

/** Marks the row of the position on the board, or of the last one before it. */
function markRow(scroll) {
    const node = tree.path(here).reverse().find((each) => each.row)
    for (const row of tree.rows) row.element.removeAttribute("aria-current")
    tree.rows.forEach((row) => (row.element.tabIndex = -1))
    if (!node) return
    const row = node.row.element
    row.setAttribute("aria-current", "true")
    row.tabIndex = 0
    if (scroll && !row.hidden) {
        const list = byId("rows")
        if (row.offsetTop < list.scrollTop || row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight) {
            list.scrollTop = row.offsetTop - list.clientHeight / 3
        }
    }
}

// -- the budget ------------------------------------------------------------------------------------------

function setBudget(budget) {
    tree.learn(Math.max(0, Math.min(tree.size, budget)))
    byId("budget").value = tree.budget
    const worth = tree.curve[tree.budget]
    byId("budget-text").textContent = `${tree.budget} of ${tree.size} · ${tree.scoreName.toLowerCase()} ${score(worth)}`
    byId("budget").setAttribute("aria-valuetext", byId("budget-text").textContent)
    drawCurve()
    filterRows()
    show(false)
}

const SVG = "http://www.w3.org/2000/svg"
function drawn(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag)
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
    if (text !== undefined) made.textContent = text
    return made
}

/** Steps of 1, 2 or 5 times a power of ten that divide a range into at most `most` parts. */
function ticks(low, high, most) {
    const raw = (high - low) / most
    const power = 10 ** Math.floor(Math.log10(raw))
    const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power
    const found = []
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k++) found.push(k * step)
    return found
}

function drawCurve() {
    const width = Math.max(260, byId("curve").clientWidth || 500)
    const height = Math.min(230, Math.round(0.5 * width))
    const [left, right, top, bottom] = [44, width - 22, 26, height - 36]
    const values = [...tree.curve, tree.utility]
    const pad = Math.max(0.01, 0.06 * (Math.max(...values) - Math.min(...values)))
    const low = Math.max(0, Math.min(...values) - pad)
    const high = Math.min(1, Math.max(...values) + pad)
    const x = (count) => left + ((right - left) * count) / Math.max(1, tree.size)
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low)
    const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "What each number of positions is worth"})
    const decimals = high - low > 0.25 ? 1 : high - low > 0.04 ? 2 : 3
    for (const value of ticks(low, high, 5)) {
        picture.append(drawn("line", {class: "grid", x1: left, x2: right, y1: y(value), y2: y(value)}))
        picture.append(drawn("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, value.toFixed(decimals)))
    }
    for (const count of ticks(0, Math.max(1, tree.size), Math.min(tree.size || 1, 6))) {
        picture.append(drawn("text", {x: x(count), y: bottom + 16, "text-anchor": "middle"}, String(count)))
    }
    picture.append(drawn("line", {class: "axis", x1: left, x2: right, y1: bottom, y2: bottom}))
    picture.append(drawn("text", {x: left - 38, y: 12}, tree.scoreName.toLowerCase()))
    picture.append(drawn("text", {x: right, y: height - 3, "text-anchor": "end"}, "positions learned"))
    const points = tree.curve.map((value, count) => `${x(count).toFixed(1)},${y(value).toFixed(1)}`).join(" ")
    picture.append(drawn("polyline", {class: "worth", points}))
    if (tree.error !== null) {
        const [from, to] = [tree.utility - tree.error, tree.utility + tree.error].map((value) => y(Math.min(high, Math.max(low, value))))
        picture.append(drawn("path", {class: "promise", d: `M${right + 13} ${from}V${to}M${right + 8} ${y(tree.utility)}h10`}))
    }
    const now = [x(tree.budget), y(tree.curve[tree.budget])]
    picture.append(drawn("line", {class: "drop", x1: now[0], x2: now[0], y1: now[1], y2: bottom}))
    picture.append(drawn("circle", {class: "now", cx: now[0], cy: now[1], r: 5.5}))
    picture.addEventListener("click", (event) => {
        const box = picture.getBoundingClientRect()
        const at = ((event.clientX - box.left) * width) / box.width
        setBudget(Math.round((tree.size * (at - left)) / (right - left)))
    })
    byId("curve").replaceChildren(picture)
}

// -- the page --------------------------------------------------------------------------------------------

function choose(number) {
    last.set(tree, here)
    tree = trees[number]
    here = last.get(tree) ?? tree.nodes[0]
    for (const each of document.querySelectorAll("[data-book]")) each.hidden = Number(each.dataset.book) !== number
    for (const [k, button] of [...byId("books").children].entries()) button.setAttribute("aria-pressed", String(k === number))
    byId("curve-note").textContent =
        "For a smaller budget: the best part of this book. A book made for that budget may have other moves, and be worth more." +
        (tree.error !== null ? " The mark on the right is what games promise for the whole book; the curve is what it was chosen by." : "")
    byId("budget").max = tree.size
    board.setPosition(here.fen, false)
    turn(tree.side === "white" ? COLOR.white : COLOR.black)
    buildRows()
    setBudget(tree.budget)
}

function fill(select, values, text) {
    select.append(...values.map((value) => element("option", {value}, value ? text(value) : "any")))
    select.addEventListener("change", filterRows)
}

/** To the row so many further on among those that are shown. */
function otherRow(step) {
    const node = tree.path(here).reverse().find((each) => each.row)
    const at = matching.findIndex((row) => node && row.node === node)
    const next = matching[at < 0 ? 0 : Math.max(0, Math.min(matching.length - 1, at + step))]
    if (next) go(next.node)
}

const forward = () => here.children.length && go(here.children[0])
const back = () => here.number && go(tree.parent(here))
const toStart = () => go(tree.nodes[0])
function toEnd() {
    let node = here
    while (node.children.length) node = node.children[0]
    go(node)
}
const flip = () => turn(wanted === COLOR.white ? COLOR.black : COLOR.white)

let wanted = board.getOrientation()
let turning = false
/** Turns the board; while it turns it takes no other order, so the last one waits. */
async function turn(color) {
    wanted = color
    if (turning) return
    turning = true
    while (board.getOrientation() !== wanted) await board.setOrientation(wanted, false)
    turning = false
    drawArrows()
}

const KEYS = {
    ArrowRight: forward, ArrowLeft: back, ArrowDown: () => otherRow(1), ArrowUp: () => otherRow(-1), Home: toStart, End: toEnd,
    f: flip, "/": () => byId("search").focus(), "+": () => setBudget(tree.budget + 1), "-": () => setBudget(tree.budget - 1),
    b: () => choose((trees.indexOf(tree) + 1) % trees.length),
}

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.target.matches("input[type=search]")) {
        if (event.key === "Enter" && matching.length) go(matching[0].node)
        if (event.key === "Escape") event.target.value = ""
        if (event.key === "Escape") filterRows()
        if (event.key === "Enter" || event.key === "Escape") event.target.blur()
        return
    }
    if (event.target.matches("input, select")) return
    const action = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key]
    if (!action) return
    event.preventDefault()
    action()
})

for (const [id, action] of Object.entries({first: toStart, back, forward, last: toEnd, flip})) byId(id).addEventListener("click", action)
byId("budget").addEventListener("input", () => setBudget(Number(byId("budget").value)))
byId("search").addEventListener("input", filterRows)
fill(byId("min-reach"), [0, 0.001, 0.01, 0.05, 0.1], (value) => `≥ ${percent(value).replace(/\.?0+%/, "%")}`)
fill(byId("min-worth"), [0, 0.0005, 0.001, 0.005, 0.02, 0.1], (value) => `≥ ${value}`)
let drawnWidth = 0
new ResizeObserver(() => {
    const width = byId("curve").clientWidth
    if (width !== drawnWidth) requestAnimationFrame(drawCurve)
    drawnWidth = width
}).observe(byId("curve"))
if (trees.length > 1) {
    byId("books").hidden = byId("key-book").hidden = false
    byId("books").append(...trees.map((each, k) => element("button", {onclick: () => choose(k)}, each.side[0].toUpperCase() + each.side.slice(1))))
}
choose(0)
