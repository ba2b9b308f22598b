"""TensorBoard's event files."""

from torch.utils.tensorboard import SummaryWriter


class Store:
    def __init__(self):
        self.writer = SummaryWriter("tb")

    def write(self, step, values):
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self):
        self.writer.close()
