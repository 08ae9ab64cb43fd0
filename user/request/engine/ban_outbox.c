// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ban_outbox.c - see ban_outbox.h. */
#include "request/engine/ban_outbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 4096
#define PROBES 16

struct ban_outbox {
	pthread_mutex_t lock;
	u32 count;
	struct ban_outbox_item item[ITEMS]; /* open addressing by key */
	struct ban_outbox_item taken[ITEMS];
};

struct ban_outbox *ban_outbox_new(void)
{
	struct ban_outbox *outbox = calloc(1, sizeof(*outbox));

	if (outbox)
		pthread_mutex_init(&outbox->lock, NULL);
	return outbox;
}

void ban_outbox_free(struct ban_outbox *outbox)
{
	if (outbox)
		pthread_mutex_destroy(&outbox->lock);
	free(outbox);
}

void ban_outbox_add(struct ban_outbox *outbox, const struct rule *rule, u64 key, u32 offenses,
		    u64 state)
{
	struct ban_outbox_item *item = NULL;

	pthread_mutex_lock(&outbox->lock);
	for (u32 i = 0; i < PROBES && !item; i++) {
		item = &outbox->item[(key + i) % ITEMS];
		if (item->key && item->key != key)
			item = NULL;
	}
	if (item) {
		outbox->count += !item->key;
		*item = (struct ban_outbox_item){
			.key = key,
			.rule_id = rule->id,
			.rule_index = rule->index,
			.offenses = item->offenses + offenses,
			.state = state ? state : item->state,
		};
	}
	pthread_mutex_unlock(&outbox->lock);
}

u32 ban_outbox_take(struct ban_outbox *outbox, const struct ban_outbox_item **ret)
{
	u32 count = 0;

	*ret = outbox->taken;
	pthread_mutex_lock(&outbox->lock);
	for (u32 i = 0; outbox->count && i < ITEMS; i++)
		if (outbox->item[i].key)
			outbox->taken[count++] = outbox->item[i];
	if (count)
		memset(outbox->item, 0, sizeof(outbox->item));
	outbox->count = 0;
	pthread_mutex_unlock(&outbox->lock);
	return count;
}
