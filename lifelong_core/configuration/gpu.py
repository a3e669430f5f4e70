"""How ONNX graphs use a GPU, as one value that settings, workers and the check of graphs share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lifelong_core.configuration.settings import Settings


@dataclass(frozen=True)
class GpuUse:
    """How one process uses the GPU.

    Attributes:
        device: number of the GPU, as CUDA counts the visible ones.
        graph_bytes: GPU memory in bytes that one graph may take; None: no limit.
        graphs: number of graphs that the process may hold at once if `graph_bytes` limits them.
        tf32: whether float32 products may be rounded to 10 bits.
        maximum_batch_size: largest batch of images.
        engines: folder of the engines that TensorRT builds; None: they are not kept.
    """

    device: int = 0
    graph_bytes: int | None = None
    graphs: int = 1
    tf32: bool = False
    maximum_batch_size: int = 64
    engines: Path | None = None

    @classmethod
    def from_settings(cls, settings: "Settings", *, workers: int) -> "GpuUse":
        """The use of the GPU by one worker.

        All workers and one check of a new graph share the budget. ONNX Runtime limits single graphs, so every graph
        gets an equal share of it.

        Args:
            settings: of the service.
            workers: number of its workers.

        Examples:
            >>> from lifelong_core.configuration.settings import Settings
            >>> settings = Settings(gpu_memory_bytes=14_000_000_000, gpu_graphs_per_worker=3)
            >>> GpuUse.from_settings(settings, workers=2).graph_bytes
            2000000000
        """
        total = settings.gpu_memory_bytes
        graphs = settings.gpu_graphs_per_worker
        return cls(
            device=settings.gpu_device,
            graph_bytes=None if total is None else total // (workers * graphs + 1),
            graphs=graphs,
            tf32=settings.gpu_tf32,
            maximum_batch_size=settings.maximum_batch_size,
            engines=settings.engine_directory.resolve(),
        )

    def to_document(self) -> dict[str, Any]:
        """JSON values for the process that checks graphs; it keeps no engines."""
        return {
            "device": self.device,
            "graph_bytes": self.graph_bytes,
            "tf32": self.tf32,
            "maximum_batch_size": self.maximum_batch_size,
        }
