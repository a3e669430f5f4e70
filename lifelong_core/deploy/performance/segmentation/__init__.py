"""Dice similarity coefficient of a segmentation model without labels (Li et al. 2022, eq. 7).

- `estimate_dice`: the estimate of a set of maps, from labelled cases
- `result`: the estimate as a value, limits that its intervals do not include, bootstrap over calibration cases
- `cases`: probability maps or logits of a case, read in blocks of pixels
- `sums`: what one pass over a case keeps: sums over its pixels, whatever their number
- `curves`: these sums as functions of the temperature, the threshold or the offset of each predicted class
- `methods`: the methods by name; parameters that match confidence to accuracy, and soft Dice to Dice
"""

from lifelong_core.deploy.performance.segmentation.cases import PixelBlock, SegmentationCase, SegmentationMap
from lifelong_core.deploy.performance.segmentation.estimate_dice import estimate_dice
from lifelong_core.deploy.performance.segmentation.methods import DICE_METHODS
from lifelong_core.deploy.performance.segmentation.result import ClassDice, DiceEstimate

__all__ = [
    "DICE_METHODS",
    "ClassDice",
    "DiceEstimate",
    "PixelBlock",
    "SegmentationCase",
    "SegmentationMap",
    "estimate_dice",
]
