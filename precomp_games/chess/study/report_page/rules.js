/* Where pieces stand after moves that are known to be legal. */

const FILES = "abcdefgh"
const SQUARES = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // a1, b1, ..., h8
const squareName = (square) => FILES[square % 8] + (Math.floor(square / 8) + 1)
const squareOf = (name) => FILES.indexOf(name[0]) + 8 * (Number(name[1]) - 1)

/** {squares: 64 pieces as FENs have them or "", turn: "w" or "b"}. */
function placed(fen) {
    const [rows, turn] = fen.split(" ")
    const squares = new Array(64).fill("")
    rows.split("/").forEach((row, k) => {
        let file = 0
        for (const character of row) {
            if (character >= "1" && character <= "8") file += Number(character)
            else squares[8 * (7 - k) + file++] = character
        }
    })
    return {squares, turn: turn ?? "w"}
}

/** The first two fields of a FEN. */
function fenOf({squares, turn}) {
    const rows = []
    for (let rank = 7; rank >= 0; rank--) {
        let row = ""
        let empty = 0
        for (const piece of squares.slice(8 * rank, 8 * rank + 8)) {
            if (piece && empty) row += empty
            empty = piece ? 0 : empty + 1
            row += piece
        }
        rows.push(row + (empty || ""))
    }
    return `${rows.join("/")} ${turn}`
}

/** The position after a legal move in UCI notation. */
function played(position, uci) {
    const squares = [...position.squares]
    const [from, to] = [squareOf(uci), squareOf(uci.slice(2))]
    const piece = squares[from]
    const kind = piece.toLowerCase()
    if (kind === "p" && from % 8 !== to % 8 && !squares[to]) squares[8 * Math.floor(from / 8) + (to % 8)] = ""
    if (kind === "k" && Math.abs(to - from) === 2) {
        const corner = to > from ? from + 3 : from - 4
        squares[(from + to) / 2] = squares[corner]
        squares[corner] = ""
    }
    squares[to] = uci[4] ? (piece === kind ? uci[4] : uci[4].toUpperCase()) : piece
    squares[from] = ""
    return {squares, turn: position.turn === "w" ? "b" : "w"}
}

const isWhite = (piece) => piece !== "" && piece === piece.toUpperCase()
