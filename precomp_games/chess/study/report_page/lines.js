/* The lines of the book, as score sheets have them: the main line is one line, and side lines fold. */

const MOST_LINES = 3000
const FEW_LINES = 20 // which are all unfolded at first
let lines = []
let matching = [] // positions that are shown, in their order

/** Cuts the tree into lines: each goes on with the likeliest reply, and has side lines at the others. */
function buildLines() {
    const relevant = (node) => node.children.filter((child) => child.inBook || child.children.length)
    const [found, tasks] = [[], []]
    const add = (node, above, at) => {
        // `at`: the last position of the line above that comes before this one.
        const line = {above, at, depth: above ? above.depth + 1 : 0, nodes: [], side: [], folded: false}
        const branches = []
        for (let each = node; each; ) {
            if (each.inBook) line.nodes.push(each)
            each.line = line
            const [main, ...others] = relevant(each)
            branches.push(...others.map((other) => [other, line.nodes.length - 1]))
            each = main
        }
        if (line.nodes.length) {
            found.push(line)
            if (above) above.side.push(line)
        }
        const own = line.nodes.length > 0
        for (const [other, k] of branches.reverse()) tasks.push(() => (own ? add(other, line, k) : add(other, above, at)))
    }
    tasks.push(() => add(tree.nodes[0], null, -1))
    while (tasks.length && found.length < MOST_LINES) tasks.pop()()
    lines = found
    if (lines.length > FEW_LINES) for (const line of lines) line.folded = line.depth > 0
    byId("rows").replaceChildren(listOf(lines.filter(({above}) => !above)))
}

function listOf(some) {
    return element("ul", {}, ...some.map(lineElement))
}

function lineElement(line) {
    line.moves = line.nodes.map((node, k) => moveButton(node, k === 0))
    line.toggle = element("button", {class: "toggle", tabindex: -1, onclick: () => fold(line)})
    line.reach = element("span", {class: "reach"})
    line.score = element("span", {class: "score"})
    line.worth = element("span", {class: "worth"})
    line.row = element("div", {class: "row"}, element("div", {class: "text"}, line.side.length ? line.toggle : null, ...line.moves),
        line.reach, line.score, line.worth)
    line.list = line.side.length ? listOf(line.side) : null
    line.element = element("li", {}, line.row, line.list)
    return line.element
}

/** A reply and our move after it. */
function moveButton(node, first) {
    const reply = node.number ? tree.number(node.ply, first) + node.san + " " : ""
    const own = tree.number(node.ply + 1, !node.number) + tree.answer(node)
    const mark = node.guessed ? element("span", {class: `${tree.unseenClass}-mark`, title: tree.guess}, "≈") : null
    const button = element("button", {class: "move", "data-position": node.position, tabindex: -1, onclick: () => go(node, false)},
        mark, element("span", {class: "reply"}, reply), element("span", {class: "own"}, own))
    node.button = button
    const position = tree.positions[node.position]
    const moves = tree.path(node).slice(1)
    node.words = [...moves.map((each) => [plainMove(each.san), each.uci]),
        ...position.play.slice(0, 1).map(([uci, san]) => [plainMove(san), uci])]
    return button
}

const plainMove = (san) => san.replace(/[+#x=!?]/g, "")

/** Whether the words of a search stand next to each other in a line; the last one may be a beginning. */
function hasMoves(node, words) {
    return node.words.some((_, start) =>
        words.every((word, k) => {
            const move = node.words[start + k]
            return move && move.some((text) => (k === words.length - 1 ? text.startsWith(word) : text === word))
        }))
}

function searched(text) {
    if (!text) return () => true
    if (text.includes("/")) {
        const [squares, turn] = text.split(/\s+/)
        // The position itself, or the one after our move in it.
        return (node) => [node, ...node.children].some((each) => {
            const fields = fenOf(each.place).split(" ")
            return fields[0] === squares && (!turn || turn === fields[1])
        })
    }
    const words = text.replace(/\d+\s*(\.+|…)/g, " ").trim().split(/\s+/).map(plainMove).filter((word) => word)
    const name = text.toLowerCase()
    const named = name.length > 2 && /[a-z]{3}/.test(name) ? (node) => (node.opening ?? "").toLowerCase().includes(name) : () => false
    return (node) => (words.length > 0 && hasMoves(node, words)) || named(node)
}

function filterLines() {
    const reach = Number(byId("min-reach").value)
    const worth = Number(byId("min-worth").value) || -Infinity
    const text = byId("search").value.trim()
    const fits = searched(text)
    const shows = (node) =>
        node.known && tree.positions[node.position].reach >= reach && tree.worth(node) >= worth && !isHidden(node) && fits(node)
    matching = []
    for (const line of lines) {
        const kept = line.nodes.filter((node) => shows(node))
        matching.push(...kept)
        line.matching = new Set(kept)
        line.first = kept[0] ?? null
        line.visible = kept.length > 0
    }
    // What a side line comes from is shown with it, from the last line to the first.
    for (const line of [...lines].reverse()) {
        const branches = line.side.filter(({visible}) => visible)
        line.visible ||= branches.length > 0
        const last = Math.max(...line.nodes.map((node, k) => (line.matching.has(node) ? k : -1)),
            ...branches.map(({at}) => at))
        line.nodes.forEach((node, k) => {
            node.button.hidden = k > last || !node.known
            node.button.classList.toggle("dim", !line.matching.has(node))
        })
        line.element.hidden = !line.visible
        line.toggle.hidden = !branches.length
        line.sides = branches.length
        const shown = line.first ?? line.nodes[0]
        line.reach.textContent = percent(tree.positions[shown.position].reach)
        line.score.textContent = score(tree.score(shown))
        line.worth.textContent = line.first ? points(tree.worth(shown)) : "–"
    }
    for (const line of lines) showFold(line)
    const {learned} = tree
    byId("count").textContent = matching.length === learned
        ? plural(learned, "position")
        : `${matching.length} of ${plural(learned, "position")}`
    showNothing(text)
    const side = lines.some(({sides}) => sides)
    byId("fold").hidden = !side
    byId("fold").textContent = lines.some((line) => line.sides && line.folded) ? "unfold all" : "fold all"
}

/** What to do where nothing is shown. */
function showNothing(text) {
    const place = byId("nothing")
    place.hidden = matching.length > 0
    if (matching.length) return
    const filtered = Number(byId("min-reach").value) || Number(byId("min-worth").value) || hidesGuesses
    const parts = []
    if (!tree.size) {
        parts.push("Nothing was worth learning. A lower --penalty, a larger --budget or more --max_plies find more.")
    } else if (!tree.learned) {
        parts.push("No position is learned yet: move the slider, or press +.")
    } else {
        parts.push(text ? "No line of this book fits. Fewer moves find more (e4 c5), a name (Sicilian), or a FEN."
            : "No position is as likely, or costs as much.")
        parts.push(" ", element("button", {id: "clear", onclick: clearFilters}, filtered ? "Show all lines" : "Clear the search"))
    }
    place.replaceChildren(element("p", {}, ...parts))
}

function clearFilters() {
    byId("search").value = ""
    byId("min-reach").value = byId("min-worth").value = "0"
    hideGuesses(false)
    filterLines()
    show(false)
}

// -- folding -----------------------------------------------------------------------------------------------

const searching = () => byId("search").value.trim() !== ""

function showFold(line) {
    if (!line.list) return
    const folded = line.folded && !searching()
    line.list.hidden = folded
    line.toggle.textContent = folded ? `▸ ${line.sides}` : "▾"
    line.toggle.setAttribute("aria-expanded", String(!folded))
    line.toggle.setAttribute("aria-label", `${plural(line.sides ?? 0, "side line")}`)
}

function fold(line, folded = !line.folded) {
    line.folded = folded
    showFold(line)
    byId("fold").textContent = lines.some((each) => each.sides && each.folded) ? "unfold all" : "fold all"
}

function foldAll() {
    const folded = !lines.some((line) => line.sides && line.folded)
    for (const line of lines) fold(line, folded && line.sides > 0)
}

function foldHere() {
    let line = lineHere()
    if (line && !line.sides) line = line.above
    if (line) fold(line)
}

// -- where we are in it ------------------------------------------------------------------------------------

/** The position on the board, or the last one before it, among those that lines have. */
const placeHere = () => tree.path(here).reverse().find((each) => each.button)
const lineHere = () => placeHere()?.line ?? null

function markLine(scrolls) {
    for (const each of byId("rows").querySelectorAll("[aria-current]")) {
        each.removeAttribute("aria-current")
        each.tabIndex = -1
    }
    const node = placeHere()
    if (!node) return
    for (let above = node.line.above; above; above = above.above) if (above.folded) fold(above, false)
    node.button.setAttribute("aria-current", "true")
    node.line.row.setAttribute("aria-current", "true")
    node.button.tabIndex = 0
    if (!scrolls || node.button.hidden) return
    const list = byId("rows")
    const [box, row] = [list.getBoundingClientRect(), node.button.getBoundingClientRect()]
    if (row.top < box.top || row.bottom > box.bottom) list.scrollTop += row.top - box.top - list.clientHeight / 3
}

/** To the line so many further on among those that are shown. */
function otherLine(step) {
    const shown = lines.filter((line) => line.first && line.element.offsetParent !== null)
    const at = shown.indexOf(lineHere())
    const next = shown[at < 0 ? 0 : clamp(at + step, 0, shown.length - 1)]
    if (next && at === 0 && step < 0) go(next.first)
    else if (next && next !== lineHere()) go(next.first)
}
