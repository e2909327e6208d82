/* The page as a whole: which book, keys, light and dark. */

const last = new Map() // where each book was left

function choose(number) {
    if (drill) stopDrill()
    playing = null
    last.set(tree, here)
    tree = trees[number]
    here = last.get(tree) ?? tree.nodes[0]
    for (const each of document.querySelectorAll("[data-book]")) each.hidden = Number(each.dataset.book) !== number
    for (const [k, button] of [...byId("books").children].entries()) button.setAttribute("aria-pressed", String(k === number))
    byId("curve-note").textContent = curveNote()
    byId("budget").max = tree.size
    byId("guess-switch").hidden = !tree.guess
    byId("unseen").textContent = tree.unseen
    for (const each of document.querySelectorAll(".of-person")) each.hidden = !tree.guess
    board.setPosition(fenOf(here.place), false)
    turn(tree.side === "white" ? COLOR.white : COLOR.black)
    buildLines()
    setBudget(tree.budget)
}

function hideGuesses(hides) {
    hidesGuesses = byId("no-guesses").checked = Boolean(tree.guess) && hides
}

function switchGuesses(hides) {
    hideGuesses(hides)
    filterLines()
    show(false)
}

function fill(select, values, text) {
    select.append(...values.map((value) => element("option", {value}, value ? text(value) : "any")))
    select.addEventListener("change", filterLines)
}

const forward = () => (playing ? inGame(playing.ply + 1) : here.children.length && go(here.children.find((child) => !isHidden(child)) ?? here.children[0]))
const back = () => (playing ? inGame(playing.ply - 1) : here.number && go(here.parent))
const toStart = () => (playing ? inGame(0) : go(tree.nodes[0]))
function toEnd() {
    if (playing) return inGame(playing.sans.length)
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
    byId("evaluation").classList.toggle("turned", wanted === COLOR.black)
}

// -- light and dark ----------------------------------------------------------------------------------------

const THEME = "precomp-games theme"
const prefersDark = matchMedia("(prefers-color-scheme: dark)")
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark"

function showTheme() {
    byId("theme").textContent = isDark() ? "Light" : "Dark"
}

function switchTheme() {
    const theme = isDark() ? "light" : "dark"
    document.documentElement.dataset.theme = theme
    try {
        localStorage.setItem(THEME, theme)
    } catch {
        // for this time, then
    }
    showTheme()
}

try {
    const theme = localStorage.getItem(THEME)
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme
} catch {
    // what the system says, then
}
prefersDark.addEventListener("change", showTheme)
showTheme()

// -- keys --------------------------------------------------------------------------------------------------

function reply(number) {
    const child = here.ours ? null : here.children.filter((each) => !isHidden(each))[number - 1]
    if (child && !playing) go(child)
}

const nextBook = () => choose((trees.indexOf(tree) + 1) % trees.length)
const watch = () => (playing ? leaveGame() : listedGames[0]?.game[4] && !byId("games").hidden && playGame(listedGames[0].game))
const KEYS = {
    ArrowRight: forward, ArrowLeft: back, ArrowDown: () => otherLine(1), ArrowUp: () => otherLine(-1), Home: toStart, End: toEnd,
    Escape: () => playing && leaveGame(), f: flip, "/": () => byId("search").focus(), "+": () => setBudget(tree.budget + 1),
    "-": () => setBudget(tree.budget - 1), b: nextBook, x: foldHere, a: foldAll, g: () => tree.guess && switchGuesses(!hidesGuesses),
    w: watch, d: () => tree.learned && startDrill(), p: () => print(), t: switchTheme, "?": () => byId("keys").showModal(),
}
for (let number = 1; number <= 9; number++) KEYS[number] = () => reply(number)
const DRILL_KEYS = {f: flip, t: switchTheme, "?": KEYS["?"], Enter: () => question.answered && goOn()}

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return
    const {target, key} = event
    if (target.matches("input[type=search]")) {
        if (key === "Enter" && matching.length) go(matching[0])
        if (key === "Escape") target.value = ""
        if (key === "Escape") filterLines()
        if (key === "Enter" || key === "Escape") target.blur()
        return
    }
    if (drill && key === "Escape") return stopDrill()
    if (target.id === "answer") {
        if (key !== "Enter") return
        event.preventDefault() // or it would press the button that comes next as well
        return give()
    }
    if (target.matches("input:not([type=checkbox]), select") || (key === "Enter" && target.matches("button, summary"))) return
    const action = (drill ? DRILL_KEYS : KEYS)[key.length === 1 ? key.toLowerCase() : key]
    if (!action) return
    event.preventDefault()
    action()
})

for (const [id, action] of Object.entries({
    first: toStart, back, forward, last: toEnd, flip, theme: switchTheme, print: () => print(), fold: foldAll,
    help: () => byId("keys").showModal(), "close-keys": () => byId("keys").close(),
    "drill-button": () => (drill ? stopDrill() : tree.learned && startDrill()),
})) byId(id).addEventListener("click", action)
byId("budget").addEventListener("input", () => setBudget(Number(byId("budget").value)))
byId("search").addEventListener("input", filterLines)
for (const link of document.querySelectorAll("[data-node]")) {
    link.addEventListener("click", () => go(tree.nodes[link.dataset.node]))
}
byId("no-guesses").addEventListener("change", (event) => switchGuesses(event.target.checked))
fill(byId("min-reach"), [0, 0.001, 0.01, 0.05, 0.1], (value) => `≥ ${percent(value).replace(/\.0+%/, "%")}`)
fill(byId("min-worth"), [0, 0.0005, 0.001, 0.005, 0.02, 0.1], (value) => `≥ ${Number((100 * value).toPrecision(3))} points`)
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
