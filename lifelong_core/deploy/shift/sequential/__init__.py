"""The sequential shift test: evidence over many cycles, valid for any number of looks.

- `evidence`: its state, and the update with a bucket of predictions
- `betting`: sums over a bucket; bets against "the mean score lies in the zone"
- `reference`: mean scores under the prevalence that the head assumes
"""
