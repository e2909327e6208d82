/* What each number of positions is worth, and how many are learned. */

function setBudget(budget) {
    tree.learn(clamp(budget, 0, tree.size))
    byId("budget").value = tree.budget
    const gain = tree.curve[tree.budget] - tree.unprepared
    byId("budget-text").textContent =
        `${tree.budget} of ${tree.size} · ${points(Math.abs(gain))} ${gain < 0 ? "fewer" : "more"} points in 100 games${tree.byClock ? ", by position" : ""}`
    byId("budget").setAttribute("aria-valuetext", byId("budget-text").textContent)
    drawCurve()
    filterLines()
    if (!playing && !question) show(false)
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
    const [left, right, top, bottom] = [36, width - 22, 26, height - 36]
    const sizes = tree.sizes.filter(([size]) => size <= 1.5 * tree.size)
    const most = Math.max(1, tree.size, ...sizes.map(([size]) => size))
    const values = [...tree.curve, tree.utility, ...sizes.map(([, value]) => value)]
    const pad = Math.max(0.01, 0.06 * (Math.max(...values) - Math.min(...values)))
    const low = Math.max(0, Math.min(...values) - pad)
    const high = Math.min(1, Math.max(...values) + pad)
    const x = (count) => left + ((right - left) * count) / most
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low)
    const picture = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "What each number of positions is worth"})
    for (const value of ticks(100 * low, 100 * high, 5)) {
        picture.append(drawn("line", {class: "grid", x1: left, x2: right, y1: y(value / 100), y2: y(value / 100)}))
        picture.append(drawn("text", {x: left - 6, y: y(value / 100) + 4, "text-anchor": "end"}, String(Math.round(10 * value) / 10)))
    }
    for (const count of ticks(0, most, Math.min(most, 6))) {
        picture.append(drawn("text", {x: x(count), y: bottom + 16, "text-anchor": "middle"}, String(count)))
    }
    picture.append(drawn("line", {class: "axis", x1: left, x2: right, y1: bottom, y2: bottom}))
    picture.append(drawn("text", {x: left - 30, y: 12}, "points in 100 games"))
    picture.append(drawn("text", {x: right, y: height - 3, "text-anchor": "end"}, "positions learned"))
    const line = (pairs) => pairs.map(([count, value]) => `${x(count).toFixed(1)},${y(value).toFixed(1)}`).join(" ")
    if (sizes.length > 1) picture.append(drawn("polyline", {class: "sizes", points: line(sizes)}))
    picture.append(drawn("polyline", {class: "worth", points: line(tree.curve.map((value, count) => [count, value]))}))
    if (tree.error !== null) {
        const [from, to] = [tree.utility - tree.error, tree.utility + tree.error].map((value) => y(clamp(value, low, high)))
        picture.append(drawn("path", {class: "promise", d: `M${right + 13} ${from}V${to}M${right + 8} ${y(tree.utility)}h10`}))
    }
    const now = [x(tree.budget), y(tree.curve[tree.budget])]
    picture.append(drawn("line", {class: "drop", x1: now[0], x2: now[0], y1: now[1], y2: bottom}))
    picture.append(drawn("circle", {class: "now", cx: now[0], cy: now[1], r: 5.5}))
    picture.addEventListener("click", (event) => {
        const box = picture.getBoundingClientRect()
        const at = ((event.clientX - box.left) * width) / box.width
        setBudget(Math.round((most * (at - left)) / (right - left)))
    })
    byId("curve").replaceChildren(picture)
}

function curveNote() {
    const parts = ["The curve: the best part of this book with so many positions."]
    parts.push(tree.sizes.length > 1 ? "The thin line: the best book of each size, which may have other moves."
        : "A book made for a smaller budget may have other moves, and be worth more.")
    if (tree.error !== null) parts.push("The mark on the right: what games promise for the whole book.")
    return parts.join(" ")
}
