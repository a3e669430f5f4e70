"""Where a training computes, and in which precision."""

from contextlib import nullcontext

import pytest
import torch

from lifelong_core.develop.training.optimisation.classifier import computes_in_bfloat16


@pytest.mark.parametrize("capable", [0, 1])
def test_a_gpu_that_emulates_bfloat16_computes_in_float32(
    monkeypatch: pytest.MonkeyPatch, capable: int
) -> None:
    asked: list[torch.device] = []

    def of_current(including_emulation: bool = True) -> bool:
        return including_emulation or asked[-1].index == capable

    def enter(device: torch.device) -> nullcontext[None]:
        asked.append(device)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "device", enter)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", of_current)
    assert [computes_in_bfloat16(torch.device("cuda", number)) for number in (0, 1)] == [
        capable == 0,
        capable == 1,
    ]
    assert not computes_in_bfloat16(torch.device("cpu"))
