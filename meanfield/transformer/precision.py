"""Float64 throughout a network of Hugging Face's library, parts of which round to float32."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class Float64(TorchFunctionMode):
    """Mode in which every conversion of a tensor to float32 becomes a conversion to float64.

    Modern decoders compute RMS norm, the angles of rotary positions and softmax in float32 whatever the format of
    their weights, which limits hidden states to seven digits.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            return args[0].double()
        if func is torch.Tensor.to:
            args = tuple(torch.float64 if argument is torch.float32 else argument for argument in args)
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") is torch.float32:
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)
