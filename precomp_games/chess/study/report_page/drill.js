/* Learning the book by heart, by the same rules as `precomp-games drill`: see drill.py.

   A card is a position, however it is reached. Asked next is what costs most, times how probably it is forgotten;
   or, from move 1, the whole line to it. Wrong answers are asked again after some others, without a rating. */

const STORE = "precomp-games drill" // where the browser keeps it what is known, by color and EPD
const AGAIN_AFTER = 4
const GOES_ON = 0.2 // a line goes on where this much of the most urgent question is at stake
const KNOWN = 0.9 // from which probability on a position counts as known
const MOST_CARDS = 20000
let question = null // {node, card, answered}
let drill = null // {cards, again, asked, right, waiting}
let fromStart = true
let kept = true // whether the browser keeps progress
const progress = loadProgress()

/** What a text of progress has that can be used. */
function parsedProgress(text) {
    const stored = JSON.parse(text)
    if (stored.version !== 1 || !Array.isArray(stored.cards) || stored.cards.length > MOST_CARDS) throw new Error("no progress of a drill")
    const found = new Map()
    for (const {epd, side, stability, difficulty, reviewed: last, due} of stored.cards) {
        const numbers = [stability, difficulty, last, due]
        const good = numbers.every((each) => Number.isFinite(each) && each > 0) && stability <= MOST_DAYS && difficulty <= 10
        if (!good || !/^(white|black)$/.test(side) || typeof epd !== "string" || epd.length > 100) throw new Error("a card that is none")
        found.set(`${side} ${epd}`, {stability, difficulty, reviewed: last, due})
    }
    return found
}

function progressText() {
    const cards = [...progress].map(([key, card]) => ({side: key.slice(0, 5), epd: key.slice(6), ...card}))
    return JSON.stringify({version: 1, cards})
}

function loadProgress() {
    let text = null
    try {
        text = localStorage.getItem(STORE)
    } catch {
        kept = false
    }
    try {
        return text === null ? new Map() : parsedProgress(text)
    } catch {
        return new Map() // what is there is something else
    }
}

function saveProgress() {
    try {
        localStorage.setItem(STORE, progressText())
    } catch {
        kept = false
    }
}

// -- what is asked -------------------------------------------------------------------------------------------

function drillCards() {
    const cards = new Map()
    for (const position of tree.positions) {
        const {node, epd} = position
        if (!node.known || isHidden(node)) continue
        const key = `${tree.side} ${epd}`
        if (!cards.has(key)) cards.set(key, {key, nodes: [], worth: 0})
        const card = cards.get(key)
        card.nodes.push(node)
        card.worth += Math.max(0, tree.worth(node))
        node.card = card
    }
    return [...cards.values()].sort((one, other) => other.worth - one.worth)
}

const isAgain = (card) => drill.again.some((entry) => entry.card === card)
const known = (card) => (isAgain(card) ? 0 : recall(progress.get(card.key) ?? null, Date.now()))
const urgency = (card) => card.worth * (1 - known(card))

/** The most urgent card; null where nothing is worth a question. */
function nextCard() {
    const due = drill.again.find(({when}) => when <= drill.asked)
    if (due) return due.card
    const cards = drill.cards.filter((card) => !isAgain(card))
    const best = cards.reduce((most, card) => (most && urgency(most) >= urgency(card) ? most : card), null)
    return best && urgency(best) > 0 ? best : drill.again[0]?.card ?? null
}

/** One of some nodes, drawn by how often they come up. */
function drawnNode(nodes) {
    const reach = (node) => tree.positions[node.position].reach
    let at = Math.random() * nodes.reduce((sum, node) => sum + reach(node), 0)
    return nodes.find((node) => (at -= reach(node)) <= 0) ?? nodes[0] ?? null
}

/** Where the line goes on after our move. */
function following(node, move) {
    const child = node.children.find(({uci}) => uci === move)
    return child ? drawnNode(child.children.filter((each) => each.known && each.card && drill.cards.includes(each.card))) : null
}

/** What a game is expected to lose to forgetting: a line fails at the first position that is forgotten. */
function expectedLoss() {
    let loss = 0
    const stillOn = new Map()
    for (const node of tree.nodes) {
        const before = node.parent ? stillOn.get(node.parent) : 1
        const own = node.known && drill.cards.includes(node.card) ? known(node.card) : 1
        stillOn.set(node, before * own)
        if (own < 1) loss += before * (1 - own) * Math.max(0, tree.worth(node))
    }
    return loss
}

function startDrill() {
    if (playing) leaveGame()
    drill = {cards: drillCards(), again: [], asked: 0, right: 0, waiting: []}
    document.body.classList.add("drilling")
    byId("here").hidden = byId("games").hidden = true
    byId("drill").hidden = false
    byId("drill-button").textContent = "Stop"
    turn(tree.side === "white" ? COLOR.white : COLOR.black)
    scrollTo(0, 0) // to the board
    ask()
}

function stopDrill() {
    question = drill = null
    document.body.classList.remove("drilling")
    byId("drill").hidden = true
    byId("here").hidden = false
    byId("drill-button").textContent = "Drill"
    board.setPosition(fenOf(here.place), false)
    show()
    byId("drill-button").focus()
}

/** Asks what is next: on the line, or the most urgent. */
function ask(onLine = null) {
    let node = onLine
    const card = nextCard()
    if (node && !fromStart && card && urgency(node.card) < GOES_ON * urgency(card)) node = null
    if (!node && drill.waiting.length) node = drill.waiting.shift()
    if (!node && card) {
        node = drawnNode(card.nodes)
        if (fromStart) {
            drill.waiting = tree.path(node).filter((each) => each.known && each.card)
            node = drill.waiting.shift()
        }
    }
    question = {node, card: node?.card ?? null, answered: node ? null : "done"}
    if (node) here = node
    board.setPosition(fenOf(here.place), true)
    drawArrows()
    drawEvaluation(null)
    enableControls(false, false)
    showQuestion()
}

/** Takes an answer, in UCI notation; null: not known. */
function answer(move) {
    const {node, card} = question
    const plays = tree.positions[node.position].play
    const moves = new Set(card.nodes.flatMap((each) => tree.positions[each.position].play.map(([uci]) => uci)))
    const right = moves.has(move)
    drill.asked += 1
    drill.right += right ? 1 : 0
    const repeated = isAgain(card)
    drill.again = drill.again.filter((entry) => entry.card !== card)
    if (!right) drill.again.push({when: drill.asked + AGAIN_AFTER, card})
    if (!repeated) {
        progress.set(card.key, reviewed(progress.get(card.key) ?? null, right, Date.now()))
        saveProgress()
    }
    question.answered = {right, given: move, move: right ? move : plays[0][0]}
    const after = played(node.place, question.answered.move)
    board.setPosition(fenOf(after), true)
    showQuestion()
}

function goOn() {
    const {node, answered} = question
    if (answered === "done") return stopDrill()
    const goesOn = fromStart || answered.right
    ask(drill.waiting.length || !goesOn ? null : following(node, answered.move))
}

// -- how it is asked -----------------------------------------------------------------------------------------

function answeredOnBoard(event) {
    const {node, answered} = question
    if (answered) return false
    if (event.type === INPUT_EVENT_TYPE.moveInputStarted) return event.piece[0] === node.place.turn
    const squares = event.squareFrom + event.squareTo
    if (event.type === INPUT_EVENT_TYPE.validateMoveInput) return legalMoves(node).includes(squares)
    if (event.type === INPUT_EVENT_TYPE.moveInputFinished && event.legalMove) {
        const known = tree.positions[node.position].play.find(([uci]) => uci.startsWith(squares))
        setTimeout(() => answer(known ? known[0] : squares))
    }
}

/** The legal moves at a question, as two squares each. */
function legalMoves(node) {
    const pairs = tree.positions[node.position].legal.match(/../g) ?? []
    return pairs.map((pair) => [...pair].map((each) => squareName(SQUARES.indexOf(each))).join(""))
}

/** A move that was typed, in UCI notation as far as it is known; undefined where it is no legal one. */
function typedMove(text) {
    const {node} = question
    const plain = plainMove(text.trim()).replace(/0/g, "O")
    const known = tree.positions[node.position].play.find(([uci, san]) => plainMove(san) === plain || uci === plain.toLowerCase())
    if (known) return known[0]
    const moves = legalMoves(node)
    const pieceAt = (name) => node.place.squares[squareOf(name)].toUpperCase()
    if (/^[a-h][1-8][a-h][1-8][qrbn]?$/i.test(plain)) return moves.find((move) => move === plain.slice(0, 4).toLowerCase())
    if (/^O-O(-O)?$/.test(plain)) {
        return moves.find((move) => pieceAt(move) === "K" && move[0] === "e" && move[2] === (plain === "O-O" ? "g" : "c"))
    }
    const san = /^([KQRBN]?)([a-h]?)([1-8]?)([a-h][1-8])[QRBN]?$/.exec(plain)
    if (!san) return undefined
    const [, kind, file, rank, target] = san
    return moves.find((move) => move.endsWith(target) && pieceAt(move) === (kind || "P") && move[0].includes(file) && move[1].includes(rank))
}

/** What an answer that was wrong costs, where the book knows it and its best other move is another one. */
function costWords(node, move) {
    const [best, ...others] = tree.positions[node.position].others
    const found = others.find(([uci]) => uci === move)
    return best && found ? `${found[1]} instead would ${found[2] >= 0 ? "cost" : "bring"} ${points(Math.abs(found[2]))}.` : ""
}

function showQuestion(problem = "") {
    const {node, answered} = question
    const sure = drill.cards.filter((card) => known(card) > KNOWN).length
    const parts = [element("p", {class: "small"},
        `${drill.right} of ${drill.asked} right · ${sure} of ${drill.cards.length} positions known · `
        + `what may be forgotten costs ${points(expectedLoss())} points in 100 games`)]
    if (answered === "done") {
        parts.push(element("p", {class: "verdict"}, "Nothing is left to ask today."))
    } else {
        const path = tree.path(node).slice(1)
        const moves = path.map((each, k) => tree.number(each.ply, k === 0) + each.san).join(" ")
        parts.push(element("p", {class: "line"}, moves || "From the start"))
        if (node.opening) parts.push(element("p", {class: "opening"}, node.opening))
    }
    if (!answered) {
        const side = tree.side[0].toUpperCase() + tree.side.slice(1)
        const input = element("input", {id: "answer", "aria-label": "Your move", autocomplete: "off", spellcheck: "false", maxlength: 12})
        parts.push(
            element("p", {class: "verdict"}, element("label", {for: "answer"}, `${side} to move: what does the book play?`)),
            element("p", {class: "answer"}, input, element("button", {id: "give", onclick: give}, "Answer"),
                element("button", {id: "unknown", onclick: () => answer(null)}, "I do not know")),
            element("p", {class: "small"}, "Nf3 or g1f3, or on the board."),
        )
        if (problem) parts.push(element("p", {class: "warn", role: "alert"}, problem))
    } else if (answered !== "done") {
        parts.push(
            element("p", {class: `verdict ${answered.right ? "" : "warn"}`}, answered.right ? "Right: " : "No. The book plays ",
                element("b", {}, tree.answer(node))),
            element("p", {id: "why"}, [tree.positions[node.position].why, answered.right ? "" : costWords(node, answered.given),
                tree.positions[node.position].sentences].filter(Boolean).join(" ")),
            node.note ? element("p", {class: "note"}, element("bdi", {}, node.note)) : "",
        )
    }
    if (answered) parts.push(element("p", {}, element("button", {id: "go-on", onclick: goOn}, answered === "done" ? "Stop" : "Go on (Enter)")))
    parts.push(drillOptions())
    byId("drill").replaceChildren(...parts)
    byId(answered ? "go-on" : "answer").focus({preventScroll: true})
}

function give() {
    const text = byId("answer").value.trim()
    const move = typedMove(text)
    if (move !== undefined) answer(move)
    else showQuestion(text ? `“${text}” is no move here.` : "Type a move, or say that you do not know.")
}

function drillOptions() {
    const mode = (value, text) => element("label", {}, element("input", {
        type: "radio", name: "mode", value, ...(fromStart === (value === "start") ? {checked: ""} : {}),
        onchange: () => { fromStart = value === "start"; drill.waiting = []; if (!question.answered) ask() },
    }), ` ${text}`)
    const file = element("input", {type: "file", id: "import", accept: ".json,application/json", "aria-label": "Take in progress", onchange: takeIn})
    return element("fieldset", {class: "modes"}, element("legend", {class: "small"}, "Asked"),
        mode("start", "lines from move 1"), mode("cost", "what costs most"),
        element("p", {class: "small"}, kept ? "This browser keeps what you know. " : "This browser keeps nothing. ",
            element("button", {id: "export", onclick: exportProgress}, "Save it to a file"), " ",
            element("label", {}, "take it in: ", file)),
        element("button", {id: "stop", onclick: stopDrill}, "Stop (Esc)"))
}

function exportProgress() {
    const address = URL.createObjectURL(new Blob([progressText()], {type: "application/json"}))
    element("a", {href: address, download: "drill-progress.json"}).click()
    setTimeout(() => URL.revokeObjectURL(address), 1000)
}

/** Takes over cards that were answered later than here. */
async function takeIn(event) {
    try {
        for (const [key, card] of parsedProgress(await event.target.files[0].text())) {
            if (!progress.has(key) || progress.get(key).reviewed < card.reviewed) progress.set(key, card)
        }
        saveProgress()
        showQuestion()
    } catch {
        showQuestion("This file is no progress of a drill.")
    }
}
