"""Units ranked by the norm of what they write to the residual stream: a baseline read off the weights, without a call.

A unit that is 1 adds one column of its projection's weight W [stream, unit] to the stream, a head that is a vector z
adds W_h z; a channel of the MLP's output adds what its row of the down projection makes of the hidden neurons. So the
norm is a column's, a head's block's (Frobenius), or a row's: what direct logit attribution reads, without the
direction. Biases are left out: no ablation by a mean moves them.
"""

from operator import attrgetter

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.types import Basis


def write_norms(subject: Subject, basis: Basis) -> Float[np.ndarray, "layer channel"]:
    """‖what a unit writes‖ of every unit of the basis. No model call.

    Raises `UsageError` where a normalisation stands between projection and stream: the write then depends on the input.
    """
    wiring, row = subject.wiring, basis.row
    if wiring.attention_norm if row.heads else wiring.mlp_norm:
        raise UsageError(
            f"expected a projection that writes to the residual stream itself, got {basis} of a "
            f"{subject.hf.config.model_type} model, which normalises in between; rank by attribution"
        )
    path = getattr(wiring, row.site if row.in_input else "down_projection")
    norms = []
    for block in wiring.blocks(subject.hf):
        projection = attrgetter(path)(block)
        weight = projection.get_parameter("weight").detach().float()
        write = weight if isinstance(projection, nn.Linear) else weight.T
        units = write.T.unflatten(0, (-1, subject.unit_size(basis))) if row.in_input else write[:, None]
        norms.append(torch.linalg.vector_norm(units, dim=(1, 2)).double().cpu().numpy())
    return np.stack(norms)
