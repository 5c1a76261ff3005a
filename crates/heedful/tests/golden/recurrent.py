"""Writes the goldens of the recurrent layers: the results of nn.RNN, nn.GRU and nn.LSTM for packed sequences.

Run it with `cargo xtask golden`. Neither parameters nor inputs are stored: both sides generate them from their names (see
`parameter_value`). The loss is a weighted sum of all outputs, so that every gradient is tested.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from parameters import parameter_value

INPUT, WIDTH = 10, 12
LENGTHS = [3, 9, 1, 6, 9]
MODULES = {"simple": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def value(name, *shape):
    return parameter_value(name, shape, WIDTH)


def named_parameters(module, layers, sides):
    """(our name, PyTorch's parameter) of every parameter. Only the GRU needs a hidden bias: the others' is 0."""
    for layer in range(layers):
        for side in sides:
            suffix = f"_l{layer}" + ("_reverse" if side == "backward" else "")
            name = f"stack.{layer}.{side}"
            yield f"{name}.input.weight", getattr(module, f"weight_ih{suffix}")
            yield f"{name}.input.bias", getattr(module, f"bias_ih{suffix}")
            yield f"{name}.hidden.weight", getattr(module, f"weight_hh{suffix}")
            hidden_bias = getattr(module, f"bias_hh{suffix}")
            if isinstance(module, nn.GRU):
                yield f"{name}.hidden.bias", hidden_bias
            else:
                nn.init.zeros_(hidden_bias)


def case(cell, layers, sides):
    module = MODULES[cell](INPUT, WIDTH, layers, bidirectional=len(sides) == 2)
    parameters = list(named_parameters(module, layers, sides))
    with torch.no_grad():
        for name, parameter in parameters:
            # nn stores [out, in], we store [in, out].
            ours = parameter.T if parameter.dim() == 2 else parameter
            ours.copy_(value(name, *ours.shape))

    x = value("x", sum(LENGTHS), INPUT).requires_grad_()
    kinds = ["h", "c"] if cell == "lstm" else ["h"]
    count = layers * len(sides)
    initial = {kind: value(f"initial.{kind}", count * len(LENGTHS), WIDTH).requires_grad_() for kind in kinds}
    start = [state.view(count, len(LENGTHS), WIDTH) for state in initial.values()]
    packed = pack_sequence(x.split(LENGTHS), enforce_sorted=False)
    outputs, last = module(packed, tuple(start) if cell == "lstm" else start[0])
    outputs = torch.cat(unpack_sequence(PackedSequence(*outputs)))
    last = dict(zip(kinds, last if cell == "lstm" else [last]))

    found = {"outputs": outputs} | {f"last.{kind}": state.reshape(-1, WIDTH) for kind, state in last.items()}
    sum((tensor * value(f"weight.{name}", *tensor.shape)).sum() for name, tensor in found.items()).backward()
    tensors = {name: tensor.detach().contiguous() for name, tensor in found.items()}
    for name, parameter in parameters:
        gradient = parameter.grad
        tensors[f"grad.{name}"] = (gradient.T if gradient.dim() == 2 else gradient).contiguous()
    tensors["grad.x"] = x.grad
    for kind, state in initial.items():
        tensors[f"grad.initial.{kind}"] = state.grad
    tensors["lengths"] = torch.tensor(LENGTHS, dtype=torch.int32)
    config = dict(cell=cell, layers=layers, directions=len(sides), input=INPUT, width=WIDTH, torch=torch.__version__)
    return tensors, {"config": json.dumps(config)}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = Path(__file__).parent / "recurrent"
    folder.mkdir(exist_ok=True)
    for cell in MODULES:
        for layers, sides in [(1, ["forward"]), (2, ["forward"]), (2, ["forward", "backward"])]:
            tensors, metadata = case(cell, layers, sides)
            path = folder / f"{cell}-{layers}-{'both' if len(sides) == 2 else 'forward'}.safetensors"
            save_file(tensors, path, metadata)
            print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
