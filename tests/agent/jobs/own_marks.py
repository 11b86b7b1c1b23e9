"""No torch: iterations marked by hand. Prints what status() says before and after."""

import perftracker

print(perftracker.status()["state"])
for _ in range(20):
    with perftracker.region("work"):
        pass
    perftracker.step()
print(perftracker.status()["state"], perftracker.status()["step"])
