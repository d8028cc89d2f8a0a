"""Steps of training of a small network with PyTorch, which has an OpenMP team, a pool and a BLAS."""
import torch

torch.manual_seed(1)
torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data, target = torch.randn(16, 3, 32, 32), torch.randn(16, 64)
for _ in range(6):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(data), target)
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
