/* A book's tree, what a budget leaves of it, and how its numbers are told. */

const RARE = 0.001 // replies less likely than this are shown on demand
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

const SVG = "http://www.w3.org/2000/svg"
function drawn(tag, attributes, ...children) {
    const made = document.createElementNS(SVG, tag)
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
    made.append(...children)
    return made
}

function percent(fraction) {
    const value = 100 * fraction
    if (value === 0) return "0%"
    if (value < 0.01) return "< 0.01%"
    return (value >= 99.95 ? "100" : value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toFixed(2)) + "%"
}

/** Points in 100 games, as `words.points` has them. */
function points(fraction) {
    const value = Math.abs(100 * fraction)
    const text = value >= 9.95 ? value.toFixed(0) : value >= 0.995 ? value.toFixed(1) : value.toFixed(2)
    return (fraction < 0 && Number(text) ? "−" : "") + text
}
const score = (value) => (value === null ? "–" : points(value))
const signed = (value) => (value > 0 ? "+" : "") + points(value)
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`

class Tree {
    constructor(book) {
        Object.assign(this, book)
        this.size = this.positions.length
        this.unseenClass = this.unseen === "guesses" ? "guess" : "model" // how replies are marked that no game has
        const {nodes} = book
        const fields = this.start.split(" ")
        this.nodes = nodes.uci.map((uci, number) => {
            const node = {number, uci, san: nodes.san[number], mass: nodes.mass[number], value: nodes.value[number], children: []}
            for (const name of ["position", "played", "note", "games", "name"]) node[name] = nodes[name][number]
            node.inBook = node.position !== undefined
            node.leaves = nodes.exit[number] !== undefined
            node.over = nodes.exit[number] === 1
            return node
        })
        for (const node of this.nodes) {
            const parent = node.number ? this.nodes[nodes.parent[node.number]] : null
            node.parent = parent
            node.place = parent ? played(parent.place, node.uci) : placed(this.start)
            node.ply = parent ? parent.ply + 1 : 2 * (Number(fields[5]) - 1) + (fields[1] === "b" ? 1 : 0)
            node.ours = (node.place.turn === "w") === (this.side === "white")
            // The opponent's reply leads to where we are to move.
            node.guessed = Boolean(this.guess && parent && node.ours && !node.games)
            node.rests = Boolean(node.guessed || (parent && parent.rests))
            node.opening = node.name ?? (parent ? parent.opening : null)
            if (parent) parent.children.push(node)
            if (node.inBook) this.positions[node.position].node = node
        }
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
                node.parent.lost += node.lost
                node.parent.lostCount += node.lostCount
                node.parent.kept += node.kept
            }
        }
    }

    path(node) {
        const found = []
        for (let each = node; each; each = each.parent) found.unshift(each)
        return found
    }

    /** The expected score of games that come here, with what is learned; null where it is not known. */
    score(node) {
        if (node.value === null || !(node.mass > 0)) return null
        return clamp((node.value - node.lost) / node.mass, 0, 1)
    }

    /** What forgetting a position and all that follows it would cost, with what is learned. */
    worth(node) {
        return this.positions[node.position].worth - (node.lost - this.price * node.lostCount)
    }

    probability(node) {
        return node.parent && node.parent.mass > 0 ? node.mass / node.parent.mass : null
    }

    /** "12." before White's moves, "12…" before Black's where `always`. */
    number(ply, always) {
        const move = Math.ceil(ply / 2)
        return ply % 2 ? `${move}.\u00a0` : always ? `${move}…\u00a0` : ""
    }

    /** What we play at a position, in SAN. */
    answer(node) {
        return this.positions[node.position].play.map(([, san]) => san).join("/")
    }

    /** The engine's evaluation, in pawns for White, and its text; null where none was asked. */
    evaluation(node) {
        // After the book's first move the position is worth what it was before it.
        const before = node.parent && node.parent.inBook && this.positions[node.parent.position].play[0][0] === node.uci
        const position = node.inBook ? node.position : before ? node.parent.position : undefined
        const found = position === undefined ? undefined : this.positions[position].evaluation
        if (found === undefined) return null
        if (typeof found === "string") return {pawns: found.includes("-") ? -100 : 100, text: found.replace("-", "−")}
        const text = (Math.abs(found) / 100).toFixed(1)
        return {pawns: found / 100, text: (found > 0 ? "+" : found < 0 && Number(text) ? "−" : "") + text}
    }
}

/** A mark of what stands behind a reply, and a text for it; null where nobody has games. */
function backing(tree, node) {
    if (!tree.guess || !node.parent || !node.ours) return null
    return node.games
        ? element("span", {class: "seen"}, tree.seen.replace("{}", node.games[0]))
        : element("span", {class: tree.unseenClass}, tree.guess)
}
