/* hf_images.c - ViT and DINOv2: encoders of the patches of an image. */
#include "sim/import/hf_models.h"

static const char of_pooler[] = "of the pooler, which is not in the workload";

/* ---- ViT ---- */

#define OF_IMAGES                                                                                                      \
    HF_FLAG("qkv_bias", "qkv_bias", "true"), HF_DROPOUT("hidden_dropout_prob", "0.0"),                                 \
        HF_SCORES("attention_probs_dropout_prob", "0.0"), HF_FINISHED("image_size"), HF_FINISHED("patch_size"),        \
        HF_FINISHED("num_channels"), HF_FINISHED("id2label"), HF_FINISHED("num_labels")

static const char *const vit_architectures[] = {"ViTForImageClassification", NULL};
static const struct dl_hf_key vit[] = {
    OF_IMAGES,
    HF_LEFT_OUT("encoder_stride", "of a decoder of masked images, which this class does not have"),
    HF_LEFT_OUT("pooler_act", of_pooler),
    HF_LEFT_OUT("pooler_output_size", of_pooler),
};

static int64_t count_or(const struct dl_hf *hf, const char *key, int64_t usual)
{
    const struct dl_json value = dl_hf_get(hf, key);
    return value.value ? json_integer_value(value.value) : usual; /* 0: no whole number */
}

/* Two, if the file names none, as in transformers. */
static int64_t count_classes(const struct dl_hf *hf)
{
    const struct dl_json names = dl_hf_get(hf, "id2label");
    enum { usual = 2 };
    return json_is_object(names.value) ? (int64_t)json_object_size(names.value) : count_or(hf, "num_labels", usual);
}

/* Squares that cover the image, and the token of the class. */
static enum dl_status set_patches(struct dl_hf *hf, int64_t usual_patch, struct dl_error *err)
{
    enum { largest = 65536, usual_image = 224, usual_channels = 3 };
    const int64_t image = count_or(hf, "image_size", usual_image), patch = count_or(hf, "patch_size", usual_patch),
                  channels = count_or(hf, "num_channels", usual_channels), classes = count_classes(hf);
    if (image < 1 || image > largest)
        return dl_hf_refuse(hf, "image_size", err, "must be a whole number in [1, %d]", largest);
    if (patch < 1 || patch > image || image % patch)
        return dl_hf_refuse(hf, "patch_size", err, "must divide image_size, %lld", (long long)image);
    if (channels < 1 || channels > largest)
        return dl_hf_refuse(hf, "num_channels", err, "must be a whole number in [1, %d]", largest);
    if (classes < 1) return dl_hf_refuse(hf, "num_labels", err, "must be a whole number above 0");
    const int64_t across = image / patch;
    json_object_set_new(hf->out->workload, "seq", json_integer(across * across + 1));
    json_object_set_new(hf->out->workload, "patch", json_integer(patch * patch * channels));
    json_object_set_new(hf->out->workload, "vocab", json_integer(classes));
    return DL_OK;
}

static enum dl_status finish_vit(struct dl_hf *hf, struct dl_error *err)
{
    enum { usual_patch = 16 };
    return set_patches(hf, usual_patch, err);
}

static const char patches_fact[] = "derived: the patches of an image, (image_size / patch_size)^2, and the class token";
const struct dl_hf_model dl_hf_vit = {
    .model_type = "vit",
    .architectures = vit_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"projections\": \"apart\", \"causal\": false,"
              " \"tied_embedding\": false}",
    .seq_fact = patches_fact,
    .keys = DL_HF_KEYS(vit),
    .shared = &dl_hf_encoder_keys,
    .finish = finish_vit,
};

/* ---- DINOv2 ---- */

/* A gated feed-forward half has two thirds of the width, rounded up to a multiple of eight. */
static enum dl_status set_width(struct dl_hf *hf, struct dl_error *err)
{
    enum { multiple = 8 };
    const double usual_ratio = 4, most_ratio = 1000, gated_share = 2.0 / 3;
    bool is_gated = false;
    const struct dl_json ratio = dl_hf_get(hf, "mlp_ratio");
    if (dl_hf_flag(hf, "use_swiglu_ffn", &is_gated, err)) return err->status;
    if (ratio.value && !(json_number_value(ratio.value) > 0 && json_number_value(ratio.value) <= most_ratio))
        return dl_hf_refuse(hf, "mlp_ratio", err, "must be a number above 0, and at most %g", most_ratio);
    int64_t width =
        (int64_t)((double)dl_hf_count(hf, "hidden") * (ratio.value ? json_number_value(ratio.value) : usual_ratio));
    if (is_gated) {
        width = ((int64_t)((double)width * gated_share) + multiple - 1) / multiple * multiple;
        json_object_set_new(hf->out->workload, "activation", json_string("swiglu"));
    }
    json_object_set_new(hf->out->workload, "ffn", json_integer(width));
    return DL_OK;
}

static enum dl_status finish_dinov2(struct dl_hf *hf, struct dl_error *err)
{
    enum { usual_patch = 14 };
    dl_hf_leave_out(hf, "hidden_size", true,
                    "the head here is on the class token alone, not on the mean of the others beside it: hidden_size "
                    "parameters a class");
    dl_hf_leave_out(hf, "use_mask_token", false, "a vector for patches that are hidden, which no step trains here");
    return set_width(hf, err) || set_patches(hf, usual_patch, err) ? err->status : DL_OK;
}

static const char *const dinov2_architectures[] = {"Dinov2ForImageClassification", NULL};
static const char of_backbone[] = "of a backbone for other tasks, which this class is not";
static const struct dl_hf_key dinov2[] = {
    OF_IMAGES,
    HF_FINISHED("mlp_ratio"),
    HF_FINISHED("use_swiglu_ffn"),
    HF_FINISHED("use_mask_token"),
    HF_LEFT_OUT("intermediate_size", "not read by the class"),
    HF_LEFT_OUT("layerscale_value", "values at the start of training cost no time"),
    HF_IS("drop_path_rate", "0", "all blocks run in every step"),
    HF_LEFT_OUT("apply_layernorm", of_backbone),
    HF_LEFT_OUT("reshape_hidden_states", of_backbone),
    HF_LEFT_OUT("out_features", of_backbone),
    HF_LEFT_OUT("out_indices", of_backbone),
    HF_LEFT_OUT("stage_names", of_backbone),
};
const struct dl_hf_model dl_hf_dinov2 = {
    .model_type = "dinov2",
    .architectures = dinov2_architectures,
    .always = "{\"norm\": \"layernorm\", \"positions\": \"learned\", \"projections\": \"apart\", \"causal\": false,"
              " \"tied_embedding\": false, \"layer_scale\": true}",
    .seq_fact = patches_fact,
    .keys = DL_HF_KEYS(dinov2),
    .shared = &dl_hf_encoder_keys,
    .finish = finish_dinov2,
};
