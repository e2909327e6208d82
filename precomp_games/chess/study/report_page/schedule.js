/* What is probably still known: the model of fsrs 6, with its usual parameters, as `precomp-games drill` has it. */

const WEIGHTS = [
    0.212, 1.2931, 2.3065, 8.2956, 6.4133, 0.8334, 3.0194, 0.001, 1.8722, 0.1666, 0.796, 1.4835, 0.0614, 0.2629, 1.6483,
    0.6014, 1.8729, 0.5425, 0.0912, 0.0658, 0.1542,
]
const DAY = 86400000 // milliseconds
const RETENTION = 0.9 // at which a card is due
const FACTOR = RETENTION ** (-1 / WEIGHTS[20]) - 1
const LEAST_STABILITY = 0.001
const MOST_DAYS = 36500
const clamp = (value, low, high) => Math.min(Math.max(value, low), high)
const firstDifficulty = (rating) => WEIGHTS[4] - Math.exp(WEIGHTS[5] * (rating - 1)) + 1
const daysSince = (card, now) => Math.floor((now - card.reviewed) / DAY)

/** The probability that a card is still known; null is a card that was never answered. */
function recall(card, now) {
    return card ? (1 + (FACTOR * Math.max(0, daysSince(card, now))) / card.stability) ** -WEIGHTS[20] : 0
}

/** A card {stability, difficulty, reviewed, due} after an answer; times are in milliseconds. */
function reviewed(card, right, now) {
    const rating = right ? 3 : 1
    const difficulty = card ? nextDifficulty(card.difficulty, rating) : clamp(firstDifficulty(rating), 1, 10)
    const stability = Math.max(LEAST_STABILITY, card ? nextStability(card, rating, now) : WEIGHTS[rating - 1])
    const days = clamp(Math.round((stability / FACTOR) * (RETENTION ** (-1 / WEIGHTS[20]) - 1)), 1, MOST_DAYS)
    return {stability, difficulty, reviewed: now, due: now + days * DAY}
}

function nextDifficulty(difficulty, rating) {
    const change = ((10 - difficulty) * -WEIGHTS[6] * (rating - 3)) / 9
    return clamp(WEIGHTS[7] * firstDifficulty(4) + (1 - WEIGHTS[7]) * (difficulty + change), 1, 10)
}

function nextStability(card, rating, now) {
    const {stability, difficulty} = card
    if (daysSince(card, now) < 1) {
        const factor = Math.exp(WEIGHTS[17] * (rating - 3 + WEIGHTS[18])) * stability ** -WEIGHTS[19]
        return stability * (rating > 1 ? Math.max(factor, 1) : factor)
    }
    const forgotten = 1 - recall(card, now)
    if (rating > 1) {
        return stability * (1 + Math.exp(WEIGHTS[8]) * (11 - difficulty) * stability ** -WEIGHTS[9] * (Math.exp(forgotten * WEIGHTS[10]) - 1))
    }
    return Math.min(
        WEIGHTS[11] * difficulty ** -WEIGHTS[12] * ((stability + 1) ** WEIGHTS[13] - 1) * Math.exp(forgotten * WEIGHTS[14]),
        stability / Math.exp(WEIGHTS[17] * WEIGHTS[18]),
    )
}
