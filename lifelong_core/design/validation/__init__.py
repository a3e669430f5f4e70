"""From a recommendation and labelled data to what a model is worth: values, intervals, thresholds, rankings."""
