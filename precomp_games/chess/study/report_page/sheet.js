/* A sheet to take along: the lines as text, and a board every few moves. */

const EVERY = 4 // our moves between two boards of a line
const MOST_BOARDS = 36

/** A position as a picture. */
function diagram(place, caption) {
    const picture = drawn("svg", {viewBox: "0 0 320 320", role: "img", "aria-label": `Board ${caption}`})
    const turned = tree.side === "black"
    place.squares.forEach((piece, square) => {
        const [file, rank] = [square % 8, Math.floor(square / 8)]
        const [x, y] = turned ? [280 - 40 * file, 40 * rank] : [40 * file, 280 - 40 * rank]
        picture.append(drawn("rect", {x, y, width: 40, height: 40, class: (file + rank) % 2 ? "light" : "dark"}))
        if (!piece) return
        const name = (isWhite(piece) ? "w" : "b") + piece.toLowerCase()
        picture.append(drawn("use", {href: `#${name}`, x, y}))
    })
    return element("figure", {}, picture, element("figcaption", {}, caption))
}

function buildSheet() {
    const summary = document.querySelector(".summary:not([hidden])")
    const parts = [element("h1", {}, document.title)]
    for (const text of summary.querySelectorAll(".versus")) parts.push(element("p", {}, text.textContent))
    for (const tile of summary.querySelectorAll(".tiles > div")) {
        const [name, value, ...more] = [...tile.children].map((each) => each.textContent.trim().replace(/\s+/g, " "))
        parts.push(element("p", {class: "fact"}, element("b", {}, name), ": ", [value, ...more].join(", ")))
    }
    if (tree.guess) parts.push(element("p", {class: "fact"}, `≈ ${tree.guess}`))
    let boards = 0
    for (const line of lines.filter(({visible}) => visible)) {
        const nodes = line.nodes.filter((node) => !node.button.hidden)
        if (!nodes.length) continue
        const text = element("p", {class: `sheet-line s${Math.min(line.depth, 6)}`})
        const name = nodes.at(-1).opening
        const above = line.above?.nodes[line.at]
        if (name && name !== above?.opening) text.append(element("b", {}, name), element("br"))
        nodes.forEach((node, k) => {
            const reply = node.number ? `${node.guessed ? "≈" : ""}${tree.number(node.ply, k === 0)}${node.san} ` : ""
            text.append(reply, element("b", {}, tree.number(node.ply + 1, !node.number) + tree.answer(node)), " ")
        })
        const pictures = []
        nodes.forEach((node, k) => {
            const due = (k + 1) % EVERY === 0 || (k === nodes.length - 1 && line.depth < 2 && nodes.length > 1)
            if (!due || boards >= MOST_BOARDS) return
            boards += 1
            const move = tree.positions[node.position].play[0]
            pictures.push(diagram(played(node.place, move[0]), `after ${tree.number(node.ply + 1, true)}${move[1]}`))
        })
        parts.push(...pictures.reverse(), text) // which float beside the lines
    }
    byId("sheet").replaceChildren(...parts)
}

addEventListener("beforeprint", buildSheet)
