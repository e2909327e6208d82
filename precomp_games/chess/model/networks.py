"""Networks trained on people's games, in the format of Leela Chess Zero.

A file (`.pb.gz`) is a gzip of one protocol buffer. Its format and its weights are read: layers of 16-bit
numbers between a least and a largest one. Maia's networks are accepted: 112 input planes, residual blocks
with squeeze-and-excitation, a convolutional policy head, and a value head of win, draw and loss, with any
number of filters and blocks. Anything else is refused in one line.

Batch normalization is folded into the convolutions, the rest is written down as an ONNX graph, and ONNX
Runtime evaluates it. onnx and onnxruntime are the extra `people`.

Source: McIlroy-Young, Sen, Kleinberg, Anderson, "Aligning superhuman AI with human behavior: chess as a model
system", KDD 2020, for the networks; lc0's weights format.

Cost: two thirds of a millisecond a position on one core, in batches, for 64 filters and 6 blocks.
"""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precomp_games._support import checks
from precomp_games._support.checks import ArgumentError, one_line, public

Floats = npt.NDArray[np.float32]

INPUT_PLANES, MOVE_PLANES, SQUARES = 112, 80, 64
"""Planes of the input; planes of the policy head, of which 73 are moves; squares of a board."""

_MISSING = "expected onnx and onnxruntime for networks of people's moves: pip install 'precomp-games[people]'"
_MOST_BYTES = 1 << 28  # of a file, unpacked: some two hundred times a network of Maia's
_MOST_FILTERS, _MOST_BLOCKS = 1024, 128
_EPSILON = 1e-5  # added to a variance in batch normalization
_OPSET, _IR_VERSION = 17, 8
_FORMAT = {"input": 1, "network": 4, "policy": 2, "value": 2}

# Messages of the file: number and kind of each field that is read. A trailing * marks repeated fields.
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Layer": {"min_val": (1, "float"), "max_val": (2, "float"), "params": (3, "bytes")},
    "Block": {
        "weights": (1, "Layer"),
        "biases": (2, "Layer"),
        "bn_means": (3, "Layer"),
        "bn_variances": (4, "Layer"),  # the format calls them stddivs
        "bn_gammas": (5, "Layer"),
        "bn_betas": (6, "Layer"),
    },
    "SE": {"w1": (1, "Layer"), "b1": (2, "Layer"), "w2": (3, "Layer"), "b2": (4, "Layer")},
    "Residual": {"conv1": (1, "Block"), "conv2": (2, "Block"), "se": (3, "SE")},
    "Weights": {
        "input": (1, "Block"),
        "residual": (2, "Residual*"),
        "policy": (3, "Block"),
        "value": (6, "Block"),
        "ip1_val_w": (7, "Layer"),
        "ip1_val_b": (8, "Layer"),
        "ip2_val_w": (9, "Layer"),
        "ip2_val_b": (10, "Layer"),
        "policy1": (11, "Block"),
    },
    "NetworkFormat": {
        "input": (1, "uint32"),
        "network": (3, "uint32"),
        "policy": (4, "uint32"),
        "value": (5, "uint32"),
    },
    "Format": {"network_format": (2, "NetworkFormat")},
    "Net": {"magic": (1, "fixed32"), "format": (4, "Format"), "weights": (10, "Weights")},
}
_MAGIC = 0x1C0


class NetworkAnswer(NamedTuple):
    """A network's output for n positions.

    Attributes:
        moves: float32[n, 80 * 64], logits of moves by plane and square.
        outcomes: float32[n, 3], probabilities of win, draw and loss of the side to move.
    """

    moves: Floats
    outcomes: Floats


class Network:
    """A network that predicts people's moves.

    Attributes:
        path: the file.
    """

    @public
    def __init__(self, path: checks.FilePath) -> None:
        """Read a file.

        Args:
            path: in lc0's format, `.pb.gz` or unpacked.

        Raises:
            ValueError: it is no such network, or onnxruntime is not installed.
            OSError: it cannot be read.
        """
        self.path = os.fspath(path)
        _libraries()  # a missing library is reported before a file is read
        try:
            weights = _weights(_unpacked(self.path))
            model = _Graph(weights).model()
        except ArgumentError:
            raise
        except (ValueError, ArithmeticError) as error:
            raise ArgumentError(
                f"expected a network of people's moves (.pb.gz), got {self.path!r} ({one_line(error)})"
            ) from None
        _, runtime = _libraries()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # the same sums on every machine
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def evaluate(self, planes: Floats) -> NetworkAnswer:
        """Evaluate positions, float32[n, 112, 8, 8], as `network_input.planes` makes them."""
        return NetworkAnswer(*self._session.run(None, {"planes": planes}))


@functools.cache
def _libraries() -> tuple[Any, Any]:
    """Return (onnx, onnxruntime), which take half a second to import.

    Raises:
        ValueError: they are not installed.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise ArgumentError(_MISSING) from None
    return onnx, onnxruntime


# -- the file ----------------------------------------------------------------------------------------------


def _unpacked(path: str) -> bytes:
    """Return the protocol buffer in a file."""
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if data[:2] == b"\x1f\x8b":
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            data = unpacking.decompress(data, _MOST_BYTES + 1)
        except zlib.error as error:
            raise ValueError(f"a damaged gzip file: {error}") from None
        if not unpacking.eof and len(data) <= _MOST_BYTES:
            raise ValueError("a gzip file that is cut short")
    if len(data) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return data


@functools.cache
def _net_message() -> Any:
    """Return the class of the whole file's message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="network.proto", package="network")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            field = described.field.add(name=name, number=number, label=label)
            if (inner := kind.rstrip("*")) in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".network.{inner}"
            else:
                field.type = getattr(kinds, f"TYPE_{inner.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("network.Net"))


def _weights(data: bytes) -> Any:
    """Return the weights in a protocol buffer of a network of the right kind."""
    from google.protobuf.message import DecodeError

    net = _net_message()()
    try:
        net.ParseFromString(data)
    except DecodeError:
        raise ValueError("no protocol buffer") from None
    if net.magic != _MAGIC:
        raise ValueError("not in lc0's format")
    given = net.format.network_format
    other = [
        f"{name} {getattr(given, name)}" for name, kind in _FORMAT.items() if getattr(given, name) != kind
    ]
    if other:
        raise ValueError(f"a network of another format: {', '.join(other)}, where {_FORMAT} is read")
    return net.weights


def _numbers(layer: Any, *shape: int) -> npt.NDArray[np.float64]:
    """Return a layer's weights in a shape, in which -1 stands for an unknown size."""
    raw = np.frombuffer(layer.params, "<u2")
    known = abs(int(np.prod(shape)))
    if not len(raw) or (len(raw) % known if -1 in shape else len(raw) != known):
        raise ValueError(f"{len(raw)} weights where there are {shape}")
    least, most = float(layer.min_val), float(layer.max_val)
    if not (np.isfinite(least) and np.isfinite(most)):
        raise ValueError(f"weights from {least} to {most}")
    return (least + (most - least) / 65535.0 * raw).reshape(shape)


def _convolution(
    block: Any, inputs: int, size: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return (weights [outputs, inputs, size, size], biases [outputs]), with normalization folded in."""
    weights = _numbers(block.weights, -1, inputs, size, size)
    count = len(weights)
    if not block.bn_variances.params:
        return weights, _numbers(block.biases, count)
    variances, means = (_numbers(each, count) for each in (block.bn_variances, block.bn_means))
    gammas = _numbers(block.bn_gammas, count) if block.bn_gammas.params else np.ones(count)
    betas = _numbers(block.bn_betas, count) if block.bn_betas.params else np.zeros(count)
    if (variances + _EPSILON <= 0.0).any():
        raise ValueError("variances below 0")
    scale = gammas / np.sqrt(variances + _EPSILON)
    return weights * scale[:, None, None, None], betas - means * scale


# -- the graph ---------------------------------------------------------------------------------------------


class _Graph:
    """A network as an ONNX graph: planes -> moves, outcomes."""

    def __init__(self, weights: Any) -> None:
        self._onnx, _ = _libraries()
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        first = _convolution(weights.input, INPUT_PLANES, 3)
        filters, blocks = len(first[1]), weights.residual
        if not (filters <= _MOST_FILTERS and len(blocks) <= _MOST_BLOCKS):
            raise ValueError(f"{filters} filters and {len(blocks)} blocks")
        x = self._relu(self._convolve("planes", first))
        for block in blocks:
            x = self._residual(x, block, filters)
        moves = self._relu(self._convolve(x, _convolution(weights.policy1, filters, 3)))
        last = _convolution(weights.policy, filters, 3)
        if len(last[1]) != MOVE_PLANES:
            raise ValueError(f"{len(last[1])} planes of moves")
        moves = self._apply("Flatten", self._convolve(moves, last))
        value = _convolution(weights.value, filters, 1)
        x = self._apply("Flatten", self._relu(self._convolve(x, value)))
        x, inner = self._dense(x, weights.ip1_val_w, weights.ip1_val_b, len(value[1]) * SQUARES)
        x, outcomes = self._dense(self._relu(x), weights.ip2_val_w, weights.ip2_val_b, inner)
        if outcomes != 3:
            raise ValueError(f"{outcomes} outcomes")
        self._ends = moves, self._apply("Softmax", x)

    def model(self) -> bytes:
        """Return the model for ONNX Runtime."""
        helper, floats = self._onnx.helper, self._onnx.TensorProto.FLOAT
        shapes = {
            "planes": (INPUT_PLANES, 8, 8),
            self._ends[0]: (MOVE_PLANES * SQUARES,),
            self._ends[1]: (3,),
        }
        planes, *ends = (
            helper.make_tensor_value_info(each, floats, ["n", *of]) for each, of in shapes.items()
        )
        graph = helper.make_graph(self._nodes, "people", [planes], ends, self._constants)
        imports = [helper.make_opsetid("", _OPSET)]
        made = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
        return bytes(made.SerializeToString())

    def _apply(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        (name,) = self._apply_split(kind, 1, *inputs, **attributes)
        return name

    def _apply_split(self, kind: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"x{len(self._nodes)}_{k}" for k in range(outputs)]
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, names, **attributes))
        return names

    def _constant(self, array: npt.NDArray[Any] | Sequence[int]) -> str:
        given = np.asarray(array)
        kind = np.float32 if given.dtype == np.float64 else np.int64
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(given, kind), name))
        return name

    def _relu(self, x: str) -> str:
        return self._apply("Relu", x)

    def _convolve(self, x: str, convolution: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]) -> str:
        size = convolution[0].shape[-1]
        return self._apply("Conv", x, *map(self._constant, convolution), pads=[size // 2] * 4)

    def _dense(self, x: str, weights: Any, biases: Any, inputs: int) -> tuple[str, int]:
        """Add a dense layer and return the name and the size of its output."""
        matrix = _numbers(weights, -1, inputs)
        constants = map(self._constant, (matrix, _numbers(biases, len(matrix))))
        return self._apply("Gemm", x, *constants, transB=1), len(matrix)

    def _residual(self, x: str, block: Any, filters: int) -> str:
        """Add two convolutions whose output is scaled and shifted according to all squares together."""
        y, both = x, (block.conv1, block.conv2)
        for k, each in enumerate(both):
            convolution = _convolution(each, filters, 3)
            if len(convolution[1]) != filters:
                raise ValueError(f"{len(convolution[1])} filters after {filters}")
            y = self._convolve(y if k == 0 else self._relu(y), convolution)
        all_squares = self._apply("Flatten", self._apply("GlobalAveragePool", y))
        inner, width = self._dense(all_squares, block.se.w1, block.se.b1, filters)
        outer, outputs = self._dense(self._relu(inner), block.se.w2, block.se.b2, width)
        if outputs != 2 * filters:
            raise ValueError(f"{outputs} outputs of squeeze-and-excitation for {filters} filters")
        outer = self._apply("Reshape", outer, self._constant([-1, 2 * filters, 1, 1]))
        scale, shift = self._apply_split("Split", 2, outer, self._constant([filters, filters]), axis=1)
        y = self._apply("Add", self._apply("Mul", y, self._apply("Sigmoid", scale)), shift)
        return self._relu(self._apply("Add", x, y))
