"""TensorBoard's event files, a folder for each rank."""

from facts import RANK
from torch.utils.tensorboard import SummaryWriter


class Store:
    everyone = True

    def __init__(self):
        self.writer = SummaryWriter(f"runs/rank_{RANK}")

    def write(self, step, values):
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self):
        self.writer.close()
